/* SPDX-License-Identifier: Apache-2.0 */
/* Tables that are made from files and from numbers. */
#include "files.h"
#include "gtpu.h"
#include "numbers.h"
#include "routes.h"
#include "sessions.h"

static const struct port_setup ports[2] = {{.next = {2, 0, 0, 0, 0, 0}, .peer = 0xc0000201},
					   {.next = {2, 0, 0, 0, 0, 1}}};

static void test_numbers(void)
{
	uint64_t value;
	uint8_t bits;
	uint32_t address;

	CHECK(number_read("010", 0, 100, &value) && value == 10);
	CHECK(number_read("0x10", 0, 100, &value) && value == 16);
	CHECK(number_read("18446744073709551615", 0, UINT64_MAX, &value) && value == UINT64_MAX);
	CHECK(!number_read("18446744073709551616", 0, UINT64_MAX, &value) &&
	      !number_read("", 0, 9, &value) && !number_read("-1", 0, 9, &value));
	CHECK(!number_read("1x", 0, 9, &value) && !number_read("10", 0, 9, &value) &&
	      !number_read(" 1", 0, 9, &value));
	CHECK(number_time("1.5ms", &value) && value == 1500000);
	CHECK(!number_time("5", &value) && !number_time("0s", &value) &&
	      !number_time("-1s", &value) && !number_time("1e99s", &value));
	CHECK(number_prefix("0.0.0.0/0", &address, &bits) && bits == 0 &&
	      number_prefix("10.0.0.1/32", &address, &bits) && address == 0x0a000001);
}

static void test_table_finds_what_was_put(void)
{
	struct table table;
	uint32_t index;

	CHECK_EQ(table_open(&table, 5000), 0);
	for (uint32_t i = 0; i < 5000; i++)
		CHECK(table_put(&table, i * 0x01000193u, i)); /* an odd factor: all different */
	CHECK(!table_put(&table, 0, 7));
	for (uint32_t i = 0; i < 5000; i++)
		CHECK(table_get(&table, i * 0x01000193u, &index) && index == i);
	for (uint32_t i = 5000; i < 20000; i++)
		CHECK(!table_get(&table, i * 0x01000193u, &index));
	table_close(&table);
}

static void test_routes_of_a_file(void)
{
	struct routes r = {0};
	struct lines_error error;
	const char *path = test_file("# all\n\n0.0.0.0/0 1\n10.0.0.0/8\t0 02:0a:00:00:00:01 # "
				     "here\n255.255.255.255/32 1\n10.1.0.0/16 0 02:0a:00:00:00:01");

	CHECK_EQ(routes_read(&r, path, ports, 2, &error), 0);
	CHECK_EQ(r.count, 4);
	CHECK_EQ(r.hop_count, 2); /* the same next hop is one */
	CHECK(r.routes[0].prefix == 0 && r.routes[0].bits == 0 &&
	      r.hops[r.routes[0].hop].port == 1);
	CHECK(r.routes[2].prefix == 0xffffffff && r.routes[2].bits == 32 &&
	      r.routes[2].hop == r.routes[0].hop);
	CHECK(r.routes[3].hop == r.routes[1].hop && r.hops[r.routes[3].hop].mac[1] == 0x0a);
	routes_close(&r);
}

static void test_wrong_routes(void)
{
	static const char *const wrong[] = {
		"10.0.0.0/33 0",   "10.0.0/8 0",
		"10.0.0.0 0",	   "10.0.0.1/31 0",
		"10.0.0.0/8 x",	   "10.0.0.0/8 2",
		"10.0.0.0/8 0 zz", "10.0.0.0/8 0 02:00:00:00:00:01 more",
		"10.0.0.0/-1 0",   "/8 0",
		"10.0.0.0/ 0",	   "0.0.0.1/0 0"};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct routes r = {0};
		struct lines_error error = {""};

		CHECK_EQ(routes_read(&r, test_file(wrong[i]), ports, 2, &error), -1);
		CHECK(strstr(error.text, "line 1: ") != NULL);
		routes_close(&r);
	}
}

static int compare(const void *a, const void *b)
{
	const struct route *x = a, *y = b;

	return x->prefix != y->prefix ? (x->prefix > y->prefix) - (x->prefix < y->prefix)
				      : x->bits - y->bits;
}

static bool same(const struct routes *a, const struct routes *b)
{
	bool equal = a->count == b->count;

	for (uint32_t i = 0; equal && i < a->count; i++)
		equal = compare(&a->routes[i], &b->routes[i]) == 0 &&
			a->routes[i].hop == b->routes[i].hop;
	return equal;
}

static void test_generated_routes(void)
{
	struct routes a = {0}, b = {0}, other = {0};
	unsigned of_24 = 0;

	CHECK_EQ(routes_generate(&a, 100000, 5, ports, 2), 0);
	CHECK_EQ(routes_generate(&b, 100000, 5, ports, 2), 0);
	CHECK_EQ(routes_generate(&other, 100000, 6, ports, 2), 0);
	CHECK_EQ(a.count, 100000);
	CHECK(same(&a, &b));
	CHECK(!same(&a, &other));
	CHECK_EQ(a.hop_count, 2);
	for (uint32_t i = 0; i < a.count; i++) {
		const struct route *r = &a.routes[i];

		CHECK(r->bits >= 8 && r->bits <= 32 &&
		      (r->bits == 32 || r->prefix << r->bits == 0));
		CHECK(r->prefix >> 24 >= 1 && r->prefix >> 24 <= 223 && r->prefix >> 24 != 127);
		CHECK_EQ(a.hops[r->hop].port, i % 2);
		of_24 += r->bits == 24;
	}
	CHECK(of_24 > 55000 && of_24 < 65000);
	qsort(a.routes, a.count, sizeof(*a.routes), compare);
	for (uint32_t i = 1; i < a.count; i++)
		CHECK(compare(&a.routes[i - 1], &a.routes[i]) < 0);
	routes_close(&a);
	routes_close(&b);
	routes_close(&other);
}

static void test_sessions_of_a_file(void)
{
	const char *path = test_file("10.0.0.1 1 2 192.0.2.1 0\n# none\n10.0.0.2 0xffffffff 0 "
				     "192.0.2.2 63\n10.0.0.3 3 3 192.0.2.3 5\n");
	struct lines_error error;
	struct gtpu g = {0};
	uint32_t index;

	CHECK_EQ(sessions_read(&g, path, &error), 0);
	CHECK_EQ(g.count, 3);
	CHECK_EQ(gtpu_open(&g), 0);
	CHECK(table_get(&g.by_teid, 0xffffffff, &index) && index == 1 && g.sessions[1].there == 0 &&
	      g.sessions[1].qfi == 63);
	CHECK(table_get(&g.by_ue, 0x0a000003, &index) && index == 2 &&
	      g.sessions[2].peer == 0xc0000203);
	gtpu_close(&g);
}

static void test_wrong_sessions(void)
{
	static const char *const wrong[] = {"10.0.0.1 1 2 192.0.2.1",
					    "10.0.0.1 1 2 192.0.2.1 64",
					    "10.0.0.1 4294967296 2 192.0.2.1 1",
					    "x 1 2 192.0.2.1 1",
					    "10.0.0.1 1 -2 192.0.2.1 1",
					    "10.0.0.1 1 2 192.0.2.1 1 1"};

	for (unsigned i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
		struct lines_error error = {""};
		struct gtpu g = {0};

		CHECK_EQ(sessions_read(&g, test_file(wrong[i]), &error), -1);
		CHECK(strstr(error.text, "line 1: ") != NULL);
		free(g.sessions);
	}
}

static void test_a_session_twice(void)
{
	static const char *const twice[] = {"10.0.0.1 1 1 192.0.2.1 1\n10.0.0.2 1 1 192.0.2.1 1\n",
					    "10.0.0.1 1 1 192.0.2.1 1\n10.0.0.1 2 1 192.0.2.1 1\n"};

	for (unsigned i = 0; i < 2; i++) {
		struct lines_error error;
		struct gtpu g = {0};

		CHECK_EQ(sessions_read(&g, test_file(twice[i]), &error), 0);
		CHECK_EQ(gtpu_open(&g), 2);
		gtpu_close(&g);
	}
}

int main(void)
{
	test_numbers();
	test_table_finds_what_was_put();
	test_routes_of_a_file();
	test_wrong_routes();
	test_generated_routes();
	test_sessions_of_a_file();
	test_wrong_sessions();
	test_a_session_twice();
	return 0;
}
