/* SPDX-License-Identifier: Apache-2.0 */
/* Which class and which flow a packet is of, what is marked, and which plans are refused. */
#include <string.h>

#include "egress/classify.h"
#include "rig.h"

struct packet {
	uint8_t bytes[128];
	struct dray_pkt pkt;
};

static struct packet ethernet(uint16_t type)
{
	struct packet p = {.pkt = {.length = 100, .room = 128}};

	p.bytes[12] = (uint8_t)(type >> 8);
	p.bytes[13] = (uint8_t)type;
	return p;
}

static struct packet ip4(uint8_t dscp, uint16_t port)
{
	struct packet p = ethernet(0x0800);
	uint8_t *ip = &p.bytes[14];

	ip[0] = 0x45;
	ip[1] = (uint8_t)(dscp << 2);
	ip[9] = 17;
	ip[12] = 10;
	ip[20] = (uint8_t)(port >> 8);
	ip[21] = (uint8_t)port;
	return p;
}

static struct packet ip6(uint8_t dscp)
{
	struct packet p = ethernet(0x86dd);

	p.bytes[14] = (uint8_t)(0x60 | dscp >> 2);
	p.bytes[15] = (uint8_t)(dscp << 6);
	p.bytes[20] = 17;
	return p;
}

static void insert_tag(struct packet *p, uint16_t type, uint8_t pcp)
{
	memmove(&p->bytes[16], &p->bytes[12], 100);
	p->bytes[12] = (uint8_t)(type >> 8);
	p->bytes[13] = (uint8_t)type;
	p->bytes[14] = (uint8_t)(pcp << 5);
	p->bytes[15] = 7;
}

static unsigned class_of(const struct scheduler *s, struct packet p)
{
	p.pkt.data = p.bytes;
	return classify(s, &p.pkt);
}

static uint32_t flow_of(struct packet p)
{
	p.pkt.data = p.bytes;
	return packet_flow(&p.pkt, 1);
}

static void classes(void)
{
	struct wire_classes plan = {.scheduler = SCHEDULER_STRICT, .classes = 5};
	struct packet p;
	struct stream none[1] = {{0}};
	struct rig rig;

	for (unsigned i = 0; i < 5; i++)
		plan.class[i].limit = 10;
	plan.class[0].flags = CLASS_META;
	plan.class[0].meta = 9;
	plan.class[1].pcp = 1 << 6 | 1 << 7;
	plan.class[2].dscp = 1ull << 46 | 1ull << 0x3f;
	plan.class[4].dscp = 1ull << 46 | 1ull << 10;
	rig_init(&rig, &plan, none, 0);
	CHECK_EQ(class_of(rig.scheduler, ip4(0, 1)), 3);  /* it has no condition: the rest */
	CHECK_EQ(class_of(rig.scheduler, ip4(46, 1)), 2); /* the first that matches */
	CHECK_EQ(class_of(rig.scheduler, ip6(46)), 2);
	CHECK_EQ(class_of(rig.scheduler, ip6(63)), 2);
	CHECK_EQ(class_of(rig.scheduler, ip4(10, 1)), 4);
	CHECK_EQ(class_of(rig.scheduler, ethernet(0x0806)), 3);
	p = ip4(46, 1);
	p.pkt.meta = 9;
	CHECK_EQ(class_of(rig.scheduler, p), 0);
	p = ip4(46, 1);
	p.pkt.flags = DRAY_PKT_VLAN;
	p.pkt.vlan = 7 << 13 | 100;
	CHECK_EQ(class_of(rig.scheduler, p), 1);
	p.pkt.vlan = 5 << 13 | 100;
	CHECK_EQ(class_of(rig.scheduler, p), 2);
	p = ip4(46, 1);
	insert_tag(&p, 0x8100, 2);
	CHECK_EQ(class_of(rig.scheduler, p), 2);
	insert_tag(&p, 0x88a8, 6);
	CHECK_EQ(class_of(rig.scheduler, p), 1);
	rig_free(&rig);
}

/* Nothing is read beyond a packet's end: the sanitizers watch. */
static void short_packets(void)
{
	struct wire_classes plan = {.scheduler = SCHEDULER_STRICT, .classes = 2};
	struct stream none[1] = {{0}};
	struct rig rig;

	plan.class[0].limit = plan.class[1].limit = 10;
	plan.class[0].dscp = 1;
	rig_init(&rig, &plan, none, 0);
	for (unsigned kind = 0; kind < 4; kind++) {
		struct packet p = kind & 1 ? ip6(0) : ip4(0, 1);

		if (kind & 2)
			insert_tag(&p, 0x8100, 1);
		for (uint32_t length = 1; length <= 80; length++) {
			uint8_t *bytes = malloc(length);
			struct dray_pkt pkt = {.data = bytes, .length = length, .room = length};

			CHECK(bytes != NULL);
			memcpy(bytes, p.bytes, length);
			(void)classify(rig.scheduler, &pkt);
			(void)packet_flow(&pkt, 1);
			(void)packet_mark(&pkt);
			free(bytes);
		}
	}
	rig_free(&rig);
}

static void flows(void)
{
	struct packet fragment = ip4(0, 1), other = ip4(0, 2), tagged = ip4(0, 1);

	CHECK(flow_of(ip4(0, 1)) == flow_of(ip4(46, 1)));
	CHECK(flow_of(ip4(0, 1)) != flow_of(ip4(0, 2)));
	insert_tag(&tagged, 0x8100, 3);
	CHECK(flow_of(tagged) == flow_of(ip4(0, 1)));
	fragment.bytes[14 + 7] = 5;
	other.bytes[14 + 7] = 9;
	CHECK(flow_of(fragment) == flow_of(other));
	CHECK(flow_of(ethernet(0x0806)) != flow_of(ethernet(0xaefe)));
}

static uint16_t sum_of(const uint8_t *ip)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < 20; i += 2)
		sum += (uint32_t)(ip[i] << 8 | ip[i + 1]);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

/* A mark keeps the checksum right, whatever it is. */
static void marks(void)
{
	struct packet p = ip6(46);

	p.pkt.data = p.bytes;
	CHECK(!packet_mark(&p.pkt));
	p.bytes[15] |= 0x10;
	CHECK(packet_mark(&p.pkt));
	CHECK_EQ(p.bytes[15] >> 4 & 3, 3);
	CHECK_EQ(p.bytes[15] >> 6, 46 & 3);
	for (uint32_t id = 0; id < 0x10000; id++) {
		uint8_t *ip;
		uint16_t sum;

		p = ip4((uint8_t)(id & 63), 1);
		p.pkt.data = p.bytes;
		ip = &p.bytes[14];
		ip[1] |= 1 + (id & 1);
		ip[4] = (uint8_t)(id >> 8);
		ip[5] = (uint8_t)id;
		sum = (uint16_t)~sum_of(ip);
		ip[10] = (uint8_t)(sum >> 8);
		ip[11] = (uint8_t)sum;
		CHECK(packet_mark(&p.pkt));
		CHECK_EQ(ip[1] & 3, 3);
		CHECK_EQ(sum_of(ip), 0xffff);
	}
	p = ip4(0, 1);
	p.pkt.data = p.bytes;
	CHECK(!packet_mark(&p.pkt));
}

static struct wire_classes good(void)
{
	struct wire_classes plan = {
		.scheduler = SCHEDULER_HTB, .classes = 2, .rate = 1000, .burst = 64};

	for (unsigned i = 0; i < 2; i++) {
		struct wire_class *c = &plan.class[i];

		c->limit = 10;
		c->rate = 100;
		c->ceil = 1000;
		c->peak = 64;
	}
	return plan;
}

/* Each is a plan with one fault. */
#define REFUSED(change)                                                                            \
	do {                                                                                       \
		struct wire_classes plan = good();                                                 \
		struct wire_class *c = &plan.class[1];                                             \
		CHECK(classes_valid(&plan));                                                       \
		(void)c;                                                                           \
		change;                                                                            \
		if (classes_valid(&plan)) {                                                        \
			fprintf(stderr, "%s:%d: accepted: %s\n", __FILE__, __LINE__, #change);     \
			test_failed();                                                             \
		}                                                                                  \
	} while (0)

static void faults(void)
{
	REFUSED(plan.scheduler = 4);
	REFUSED(plan.classes = 0);
	REFUSED(plan.classes = 9);
	REFUSED(plan.classes = 1); /* the second is not empty */
	REFUSED(plan.rate = 7);
	REFUSED(plan.rate = CLASS_RATE_MAX + 1);
	REFUSED(plan.rate = 0);
	REFUSED(plan.burst = 63);
	REFUSED(plan.reserved = 1);
	REFUSED(plan.reserved2 = 1);
	REFUSED(plan.scheduler = SCHEDULER_STRICT); /* which grants no rates */
	REFUSED(c->discipline = DISCIPLINES);
	REFUSED(c->limit = 0);
	REFUSED(c->limit = 65537);
	REFUSED(c->flags = 8);
	REFUSED(c->flags = CLASS_ECN);
	REFUSED(c->flags = CLASS_REALTIME);
	REFUSED(c->meta = 1);
	REFUSED(c->priority = 8);
	REFUSED(c->rate = 0);
	REFUSED(c->ceil = 99);
	REFUSED(c->peak = 63);
	REFUSED(c->peak = 1ull << 32);
	REFUSED(c->peak_ns = 1);
	REFUSED(c->target_ns = 1);
	REFUSED(c->interval_ns = 1);
	REFUSED(c->discipline = DISCIPLINE_BFIFO); /* of 10 bytes */
	REFUSED((c->discipline = DISCIPLINE_CODEL, c->interval_ns = 5));
	REFUSED((c->discipline = DISCIPLINE_CODEL, c->target_ns = 5, c->interval_ns = 4));
	REFUSED((c->discipline = DISCIPLINE_SLOT, c->target_ns = 999));
	REFUSED((c->discipline = DISCIPLINE_SLOT, c->target_ns = c->interval_ns = 1000));
	REFUSED(plan.scheduler = SCHEDULER_HFSC); /* a peak without a time */
	REFUSED((plan.scheduler = SCHEDULER_NONE));
}

int main(void)
{
	classes();
	short_packets();
	flows();
	marks();
	faults();
	return 0;
}
