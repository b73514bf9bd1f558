/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load balancer: both directions of a flow meet one worker, flows spread evenly, and only those
 * move whose worker came or went.
 */
#include "files.h"
#include "flow.h"
#include "function.h"
#include "ip4.h"

#define FLOWS 4000u
#define WORKERS 5u
#define ALL (((1u << WORKERS) - 1) << 1) /* ports 1 to 5 */
#define GTPU_BYTES 16u			 /* header, options, an extension */

static struct packet p;

struct flow {
	uint32_t source, destination, from, to, protocol;
};

static struct flow of(uint32_t i)
{
	return (struct flow){.source = 0x0a000000 + i / 7,
			     .destination = 0xc6336401,
			     .from = 1024 + i,
			     .to = 443,
			     .protocol = i % 2 ? 6 : PROTOCOL_UDP};
}

static struct flow back(struct flow f)
{
	return (struct flow){.source = f.destination,
			     .destination = f.source,
			     .from = f.to,
			     .to = f.from,
			     .protocol = f.protocol};
}

static void put_ports(uint8_t *to, struct flow f)
{
	put16(to, f.from);
	put16(to + 2, f.to);
}

static uint32_t put_ip4(uint8_t *to, struct flow f)
{
	ip4_write(to, f.source, f.destination, f.protocol, 0, 20);
	put_ports(to + IP4, f);
	return IP4 + 20;
}

/* With a hop-by-hop and a destination options header before TCP or UDP. */
static uint32_t put_ip6(uint8_t *to, struct flow f)
{
	memset(to, 0, 40 + 8 + 16 + 20);
	to[0] = 0x60;
	put32(to + 20, f.source);
	put32(to + 36, f.destination);
	to[40] = 60;
	to[48] = (uint8_t)f.protocol;
	to[49] = 1;
	put_ports(to + 64, f);
	return 84;
}

static uint64_t hash(const uint8_t *frame, uint32_t length)
{
	packet_take(&p, frame, length, 0, FLOW_SNAPSHOT);
	return flow_hash(&p);
}

static uint64_t hash_ip4(struct flow f)
{
	uint8_t frame[64] = {0};

	put16(frame + 12, TYPE_IP4);
	return hash(frame, ETHERNET + put_ip4(frame + ETHERNET, f));
}

static uint64_t hash_ip6(struct flow f)
{
	uint8_t frame[128] = {0};

	put16(frame + 12, 0x86dd);
	return hash(frame, ETHERNET + put_ip6(frame + ETHERNET, f));
}

static uint64_t hash_tagged(struct flow f)
{
	uint8_t frame[72] = {0};

	put16(frame + 12, TYPE_SVLAN);
	put16(frame + 16, TYPE_VLAN);
	put16(frame + 20, TYPE_IP4);
	return hash(frame, 22 + put_ip4(frame + 22, f));
}

/* From a radio, or to it: the outer addresses and ports are the same for all users. */
static uint64_t hash_gtpu(struct flow f, bool extended)
{
	const struct flow outer = {.source = 0xc6120002,
				   .destination = 0xc6120001,
				   .from = GTPU_PORT,
				   .to = GTPU_PORT,
				   .protocol = PROTOCOL_UDP};
	uint8_t frame[128] = {0}, *gtpu = frame + ETHERNET + IP4 + UDP;

	put16(frame + 12, TYPE_IP4);
	put_ip4(frame + ETHERNET, outer);
	gtpu[0] = extended ? 0x34 : 0x30;
	gtpu[1] = 255;
	gtpu[4] = (uint8_t)f.from; /* another TEID in each direction */
	gtpu[11] = 0x85;
	gtpu[12] = 1;
	return hash(frame, ETHERNET + IP4 + UDP + GTPU_BYTES +
				   put_ip4(gtpu + (extended ? GTPU_BYTES : 8), f));
}

/* The most headers that ports are found behind: a user's IPv6 in GTP-U over IPv6, with two tags. */
static uint64_t hash_deepest(struct flow f)
{
	uint8_t frame[160] = {0}, *outer = frame + 22, *gtpu = outer + 40 + UDP,
		*inner = gtpu + GTPU_BYTES;

	put16(frame + 12, TYPE_SVLAN);
	put16(frame + 16, TYPE_VLAN);
	put16(frame + 20, 0x86dd);
	outer[0] = inner[0] = 0x60;
	outer[6] = PROTOCOL_UDP;
	put16(outer + 40, GTPU_PORT);
	put16(outer + 42, GTPU_PORT);
	gtpu[0] = 0x34;
	gtpu[1] = 255;
	gtpu[11] = 0x85;
	gtpu[12] = 1;
	inner[6] = (uint8_t)f.protocol;
	put32(inner + 20, f.source);
	put32(inner + 36, f.destination);
	put_ports(inner + 40, f);
	return hash(frame, (uint32_t)(inner + 60 - frame));
}

static void test_both_directions(void)
{
	for (uint32_t i = 0; i < FLOWS; i++) {
		struct flow f = of(i);

		CHECK(hash_ip4(f) == hash_ip4(back(f)));
		CHECK(hash_ip6(f) == hash_ip6(back(f)));
		CHECK(hash_tagged(f) == hash_ip4(f));
		CHECK(hash_gtpu(f, true) == hash_ip4(f) && hash_gtpu(back(f), true) == hash_ip4(f));
		CHECK(hash_gtpu(f, false) == hash_ip4(f));
		CHECK(hash_deepest(f) == hash_ip6(f) && hash_deepest(back(f)) == hash_ip6(f));
	}
}

/* A port belongs to its address: the ends of two flows that have exchanged ports are others. */
static void test_ports_count(void)
{
	struct flow f = of(2), ports = f, protocol = f;

	ports.from = f.to;
	ports.to = f.from;
	protocol.protocol = 132;
	CHECK(hash_ip4(f) != hash_ip4(ports));
	CHECK(hash_ip4(f) != hash_ip4(protocol));
	ports = f;
	ports.from++;
	CHECK(hash_ip4(f) != hash_ip4(ports) && hash_ip6(f) != hash_ip6(ports));
	/* ESP has none: what stands there is no port. */
	f.protocol = ports.protocol = 50;
	CHECK(hash_ip4(f) == hash_ip4(ports));
}

/* All fragments of a datagram, of which only the first has ports, meet one worker. */
static void test_fragments(void)
{
	uint8_t first[64] = {0}, last[64] = {0}, six[128] = {0}, other[128];
	uint32_t length;

	put16(first + 12, TYPE_IP4);
	length = ETHERNET + put_ip4(first + ETHERNET, of(1));
	put16(first + ETHERNET + 6, 0x2000);
	memcpy(last, first, sizeof(last));
	put16(last + ETHERNET + 6, 0x00b9);
	put32(last + ETHERNET + IP4, 0xdeadbeef);
	CHECK(hash(first, length) == hash(last, length));
	put16(six + 12, 0x86dd);
	put_ip6(six + ETHERNET, of(1));
	/* behind hop-by-hop comes a fragment header, and behind that UDP */
	six[ETHERNET + 40] = 44;
	six[ETHERNET + 48] = PROTOCOL_UDP;
	memcpy(other, six, sizeof(other));
	put32(other + ETHERNET + 56, 0xdeadbeef);
	put32(other + ETHERNET + 64, 0xdeadbeef);
	CHECK(hash(six, 98) == hash(other, 98));
}

/* What is not IP, or is cut, has both directions at one worker as well. */
static void test_no_flow(void)
{
	uint8_t frame[64] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2},
		reply[64] = {2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1};

	put16(frame + 12, TYPE_ARP);
	put16(reply + 12, TYPE_ARP);
	CHECK(hash(frame, 60) == hash(reply, 60));
	put16(frame + 12, TYPE_IP4);
	put16(reply + 12, TYPE_IP4);
	for (uint32_t length = ETHERNET; length < ETHERNET + IP4; length++) {
		frame[ETHERNET] = 0x45;
		CHECK(hash(frame, length) == hash(reply, 60)); /* there it is version 0 */
	}
	frame[ETHERNET] = 0x44; /* 16 bytes of header */
	CHECK(hash(frame, 60) == hash(reply, 60));
}

static void test_even(void)
{
	unsigned count[1 + WORKERS] = {0};

	for (uint32_t i = 0; i < FLOWS; i++)
		count[lb_pick(ALL, hash_ip4(of(i)))]++;
	CHECK_EQ(count[0], 0);
	for (unsigned w = 1; w <= WORKERS; w++)
		CHECK(count[w] > FLOWS / WORKERS * 9 / 10 && count[w] < FLOWS / WORKERS * 11 / 10);
}

static void test_only_its_flows_move(void)
{
	for (unsigned gone = 1; gone <= WORKERS; gone++) {
		unsigned count[1 + WORKERS] = {0}, moved = 0;

		for (uint32_t i = 0; i < FLOWS; i++) {
			uint64_t h = hash_ip6(of(i));
			unsigned before = lb_pick(ALL, h), after = lb_pick(ALL & ~(1u << gone), h);

			CHECK(after != gone && (before == gone || after == before));
			moved += before == gone;
			count[after] += before == gone;
		}
		for (unsigned w = 1; w <= WORKERS; w++) /* the others share them */
			CHECK(w == gone || (count[w] > moved / (WORKERS - 1) / 2 &&
					    count[w] < moved / (WORKERS - 1) * 3 / 2));
	}
}

static void test_handle(void)
{
	struct function f = {.mode = MODE_LB, .ports = 3};
	struct change c = {0};
	uint8_t frame[64] = {0};

	CHECK_EQ(lb_open(&f.lb, false, 1), 0);
	put16(frame + 12, TYPE_IP4);
	put_ip4(frame + ETHERNET, of(3));
	packet_take(&p, frame, sizeof(frame), 0, function_snapshot(MODE_LB));
	CHECK_EQ(function_handle(&f, &p, &c), DROP_WORKER);
	lb_first(&f.lb, 1u << 2);
	CHECK_EQ(function_handle(&f, &p, &c), PASS);
	CHECK(c.out == 2 && c.keep == sizeof(frame) && c.push == 0 && c.strip == 0);
	lb_change(&f.lb, 1u << 2);
	CHECK_EQ(f.lb.rebalances, 0);
	lb_change(&f.lb, 1u << 1);
	CHECK_EQ(f.lb.rebalances, 1);
	CHECK_EQ(function_handle(&f, &p, &c), PASS);
	CHECK_EQ(c.out, 1);
	p.in = 2;
	CHECK_EQ(function_handle(&f, &p, &c), PASS); /* also from a worker that is going */
	CHECK_EQ(c.out, 0);
	packet_take(&p, frame, ETHERNET - 1, 0, function_snapshot(MODE_LB));
	CHECK_EQ(function_handle(&f, &p, &c), DROP_SHORT);
	lb_close(&f.lb);
}

int main(void)
{
	test_both_directions();
	test_ports_count();
	test_fragments();
	test_no_flow();
	test_even();
	test_only_its_flows_move();
	test_handle();
	return 0;
}
