/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What workers announce: one that leaves gets nothing more and its announcement back, one that
 * falls silent is passed over, and nobody behind port 0 speaks for a worker.
 */
#include "announce.h"
#include "files.h"
#include "function.h"

#define PORTS 4u
#define LINKS 0xeu /* of all workers */
#define SILENCE 200u

static struct function f;
static struct change c;

static enum reason from(unsigned port, enum announcement what, uint64_t number)
{
	static const uint8_t mac[MAC] = {2, 0, 0, 0, 0, 9};
	uint8_t frame[ANNOUNCEMENT];
	struct packet p;

	announce_write(frame, mac, what, number);
	packet_take(&p, frame, sizeof(frame), port, function_snapshot(MODE_LB));
	return function_handle(&f, &p, &c);
}

/* Where a packet of port 0 goes; flows differ by their source. */
static unsigned worker_of(unsigned flow)
{
	uint8_t frame[ANNOUNCEMENT] = {0};
	struct packet p;

	put16(frame + 12, TYPE_IP4);
	frame[ETHERNET] = 0x45;
	put32(frame + ETHERNET + 12, flow);
	packet_take(&p, frame, sizeof(frame), 0, function_snapshot(MODE_LB));
	CHECK_EQ(function_handle(&f, &p, &c), PASS);
	return c.out;
}

static void look(uint32_t links, uint64_t now)
{
	lb_change(&f.lb, lb_members(&f.lb, links, now));
}

static void begin(bool announced)
{
	lb_close(&f.lb);
	f = (struct function){.mode = MODE_LB, .ports = PORTS};
	CHECK_EQ(lb_open(&f.lb, announced, SILENCE), 0);
	look(LINKS, 0);
}

static void test_leaving(void)
{
	unsigned before[64];

	begin(false);
	CHECK_EQ(f.lb.up, LINKS);
	for (unsigned i = 0; i < 64; i++)
		before[i] = worker_of(i);
	CHECK_EQ(from(2, ANNOUNCES_LEAVING, 77), PASS);
	/* back to the same port, as it was */
	CHECK(c.out == 2 && c.keep == ANNOUNCEMENT && c.strip == 0 && c.push == 0);
	for (unsigned i = 0; i < 64; i++) /* at once, before anyone looks at links */
		CHECK(before[i] == 2 ? worker_of(i) != 2 : worker_of(i) == before[i]);
	look(LINKS, 5);
	CHECK_EQ(f.lb.up, LINKS & ~4u);
	look(LINKS & ~4u, 10); /* it has gone; the next worker has the port */
	look(LINKS, 15);
	for (unsigned i = 0; i < 64; i++)
		CHECK_EQ(worker_of(i), before[i]);
	CHECK_EQ(from(2, ANNOUNCES_LEAVING, 78), PASS);
	CHECK_EQ(from(2, ANNOUNCES_HERE, 0), DROP_ANNOUNCEMENT); /* a next one, behind one link */
	look(LINKS, 20);
	CHECK_EQ(f.lb.up, LINKS);
}

static void test_silence(void)
{
	begin(false);
	for (unsigned port = 1; port < PORTS; port++)
		CHECK_EQ(from(port, ANNOUNCES_HERE, 0), DROP_ANNOUNCEMENT);
	look(LINKS, 100);
	CHECK_EQ(from(1, ANNOUNCES_HERE, 0), DROP_ANNOUNCEMENT);
	look(LINKS, 299);
	CHECK_EQ(f.lb.up, LINKS);
	look(LINKS, 300); /* 2 and 3 last spoke at 100 */
	CHECK_EQ(f.lb.up, 1u << 1);
	CHECK_EQ(from(3, ANNOUNCES_HERE, 0), DROP_ANNOUNCEMENT);
	look(LINKS, 310);
	CHECK_EQ(f.lb.up, 1u << 1 | 1u << 3);
	look(LINKS, 10000); /* all are silent: it was the balancer that did not run */
	CHECK_EQ(f.lb.up, LINKS);
	look(LINKS & ~8u, 10001); /* but for a worker that has no link */
	CHECK_EQ(f.lb.up, LINKS & ~8u);
}

/* A worker that never announces itself counts by its link alone, unless that is not enough. */
static void test_announced(void)
{
	begin(false);
	look(LINKS, 10000);
	CHECK_EQ(f.lb.up, LINKS);
	begin(true);
	CHECK_EQ(f.lb.up, 0);
	CHECK_EQ(from(3, ANNOUNCES_HERE, 0), DROP_ANNOUNCEMENT);
	look(LINKS, 10);
	CHECK_EQ(f.lb.up, 1u << 3);
	look(0, 15);
	look(LINKS, 20);
	CHECK_EQ(f.lb.up, 0);
}

static void test_nobody_else(void)
{
	struct packet p;
	uint8_t frame[ANNOUNCEMENT];
	uint64_t number;

	begin(false);
	CHECK_EQ(from(0, ANNOUNCES_LEAVING, 1), DROP_ANNOUNCEMENT);
	CHECK_EQ(from(0, ANNOUNCES_HERE, 1), DROP_ANNOUNCEMENT);
	CHECK_EQ(f.lb.news->leaving, 0);
	CHECK_EQ(f.lb.news->heard[0], 0);
	announce_write(frame, frame, ANNOUNCES_LEAVING, 0x123456789abcdef0);
	for (uint32_t n = 0; n < sizeof(frame); n++) {
		packet_take(&p, frame, n, 1, function_snapshot(MODE_LB));
		CHECK_EQ(announce_read(&p, &number),
			 n < 30 ? ANNOUNCES_NOTHING : ANNOUNCES_LEAVING);
	}
	CHECK(number == 0x123456789abcdef0);
	for (unsigned kind = 3; kind < 256; kind++) {
		frame[21] = (uint8_t)kind;
		packet_take(&p, frame, sizeof(frame), 1, function_snapshot(MODE_LB));
		CHECK_EQ(announce_read(&p, &number), ANNOUNCES_NOTHING);
	}
}

int main(void)
{
	test_leaving();
	test_silence();
	test_announced();
	test_nobody_else();
	lb_close(&f.lb);
	return 0;
}
