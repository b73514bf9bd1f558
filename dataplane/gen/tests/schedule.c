/* SPDX-License-Identifier: Apache-2.0 */
/* When packets are due, and how units are read. */
#include "schedule.h"

#include "support.h"

static struct options options(const char *rate, uint64_t granularity_ns)
{
	struct options o = {.size = 1000, .burst = 1, .granularity_ns = granularity_ns};

	CHECK(units_rate(rate, &o.rate));
	return o;
}

/* After n packets the next is due at n / rate, however far that is: nothing adds up. */
static void absolute(void)
{
	struct options o = options("3pps", 0);
	struct schedule s = schedule_begin(&o, 500);

	for (unsigned i = 0; i < 3000000; i++)
		schedule_pass(&s, 1);
	CHECK_EQ(schedule_due(&s), 500 + 1000000ll * 1000000000);
	schedule_pass(&s, 1);
	CHECK_EQ(schedule_due(&s), 500 + 1000000ll * 1000000000 + 333333333);
}

static void bursts(void)
{
	struct options o = options("100kpps", 250000);
	struct schedule s = schedule_begin(&o, 0);

	CHECK_EQ(s.burst, 25);
	CHECK_EQ(schedule_interval(&s), 250000);
	schedule_pass(&s, 25);
	CHECK_EQ(schedule_due(&s), 250000);
	o = options("1kpps", 250000);
	CHECK_EQ(schedule_begin(&o, 0).burst, 1);
	o.burst = 8;
	CHECK_EQ(schedule_begin(&o, 0).burst, 8);
	o = options("1Gpps", 100000000);
	CHECK_EQ(schedule_begin(&o, 0).burst, BURST_MAX);
	o = options("max", 250000);
	CHECK_EQ(schedule_due(&(struct schedule){.start_ns = 9}), 9);
}

static void bits(void)
{
	struct options o = options("8Mbps", 0);
	struct schedule s = schedule_begin(&o, 0);

	schedule_pass(&s, 1000);
	CHECK_EQ(schedule_due(&s), 1000000000); /* 1000 packets of 8000 bits */
	o.layer_bytes = 24;
	s = schedule_begin(&o, 0);
	schedule_pass(&s, 1000);
	CHECK_EQ(schedule_due(&s), 1024000000);
	o.layer_bytes = 0;
	o.imix = true;
	s = schedule_begin(&o, 0);
	schedule_pass(&s, 12000); /* 12 are 4294 bytes */
	CHECK_EQ(schedule_due(&s), 1000ll * 4294 * 1000);
}

/* What is overdue is due before that time, and the next burst is not; of a mix, the next cycle. */
static void overdue(void)
{
	static const struct {
		const char *rate;
		bool imix;
		uint32_t burst;
	} cases[] = {
		{"3Mpps", false, 1},  {"7pps", false, 1},   {"1kpps", false, 7},
		{"8Mbps", false, 1},  {"9Mbps", false, 32}, {"100Mbps", true, 1},
		{"100Mbps", true, 5},
	};

	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options o = options(cases[i].rate, 0);
		struct schedule s;
		uint64_t n;

		o.imix = cases[i].imix;
		o.burst = cases[i].burst;
		s = schedule_begin(&o, 500);
		CHECK_EQ(schedule_overdue(&s, 0), 0);
		CHECK_EQ(schedule_overdue(&s, 500), 0);
		n = schedule_overdue(&s, 1000000500);
		CHECK(n > 0 && n % (o.imix ? 12 * o.burst : o.burst) == 0);
		schedule_pass(&s, n - o.burst);
		CHECK(schedule_due(&s) < 1000000500);
		schedule_pass(&s, o.burst);
		CHECK_EQ(schedule_overdue(&s, 1000000500), 0);
		schedule_pass(&s, o.imix ? 12 * o.burst : 0);
		CHECK(schedule_due(&s) >= 1000000500);
	}
}

static void mix(void)
{
	struct options o = options("1pps", 0);
	struct schedule s;
	unsigned small = 0, medium = 0, large = 0;

	o.imix = true;
	s = schedule_begin(&o, 0);
	for (unsigned i = 0; i < 12; i++) {
		small += schedule_size(&s, 120 + i) == 60;
		medium += schedule_size(&s, 120 + i) == 590;
		large += schedule_size(&s, 120 + i) == 1514;
	}
	CHECK(small == 7 && medium == 4 && large == 1);
	o.headers = 62; /* IPv6 */
	s = schedule_begin(&o, 0);
	CHECK_EQ(schedule_size(&s, 0), 80);
	CHECK_EQ(schedule_size(&s, 1), 590);
}

static void units(void)
{
	static const char *const wrong[] = {"",	   "k",	  "-1",	  "1e3", "1.2.3",
					    "1kk", "1 k", "0x10", "nan", "99999999999999999999"};
	struct rate r;
	uint64_t v;

	CHECK(units_number("1500", &v) && v == 1500);
	CHECK(units_number("1.5k", &v) && v == 1500);
	CHECK(units_number("18446744073709551615", &v) && v == UINT64_MAX);
	CHECK(units_time("250us", &v) && v == 250000);
	CHECK(units_time("1.5s", &v) && v == 1500000000);
	CHECK(units_time("0", &v) && v == 0);
	CHECK(!units_time("5", &v) && !units_time("5m", &v) && !units_time("us", &v));
	CHECK(units_rate("2.5Gbps", &r) && r.bits && r.per_second == 2500000000);
	CHECK(units_rate("1000pps", &r) && !r.bits && r.per_second == 1000);
	CHECK(units_rate("max", &r) && r.per_second == 0);
	CHECK(!units_rate("0pps", &r) && !units_rate("10", &r) && !units_rate("10Mb", &r));
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK(!units_number(wrong[i], &v));
}

int main(void)
{
	absolute();
	bursts();
	bits();
	overdue();
	mix();
	units();
	return 0;
}
