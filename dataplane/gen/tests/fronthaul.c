/* SPDX-License-Identifier: Apache-2.0 */
/* A fronthaul's options, schedule, frames and windows. */
#include "fronthaul.h"

#include "frame.h"
#include "schedule.h"
#include "support.h"
#include "windows.h"

#define SLOT 500000ull /* ns, at 30 kHz */

static struct fronthaul example(const char *text)
{
	struct fronthaul f;

	CHECK(fronthaul_read(text, &f) == NULL);
	return f;
}

static void options(void)
{
	static const char *const bad[] = {"",
					  "prb=51",
					  "scs=31",
					  "scs=60", /* no usual windows */
					  "scs=30,prb=0",
					  "scs=30,prb=274",
					  "scs=30,layers=17",
					  "scs=30,vlan=4095",
					  "scs=30,scs=30",
					  "scs=30,t1a-up=96",
					  "scs=30,t1a-up=196-96",
					  "scs=30,t2a-cp=0-10001",
					  "scs=30,ta4=0-75",
					  "scs"};
	struct fronthaul f;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(fronthaul_read(bad[i], &f) != NULL);
	f = example("scs=30");
	CHECK(f.prb == 273 && f.layers == 4 && f.vlan == 1 && f.slots.slot_ns == SLOT);
	CHECK_EQ(slots_size_max(&f.slots) + 4, 7682); /* with FCS */
	CHECK_EQ(slots_rate(&f.slots), 120000);
	CHECK(f.t1a[FRONTHAUL_U].least_ns == 96000 && f.t2a[FRONTHAUL_U].most_ns == 428000);
	f = example("scs=60,t1a-cp=1-2,t1a-up=3-4,t2a-cp=5-6,t2a-up=7-8,layers=1");
	CHECK(f.slots.slot_ns == 250000 && f.t2a[FRONTHAUL_C].least_ns == 5000);
	CHECK_EQ(slots_rate(&f.slots), 60000);
}

/* Every message is due as long before its symbol as its plane says, and they are in that order. */
static void in_order(const char *text)
{
	struct fronthaul f = example(text);
	struct frame_address a = {.fronthaul = &f};
	uint64_t first = slots_first(&f.slots, 7 * SLOT + 1), last = 0, behind = 0;
	uint32_t c_plane = 0;

	CHECK(slots_due(&f.slots, first) >= 7 * SLOT + 1);
	CHECK_EQ(slots_size(&f.slots, first), 60);
	for (uint64_t n = first; n < first + 5 * 15ull * f.layers; n++) {
		uint64_t due = slots_due(&f.slots, n);
		struct fronthaul_symbol s;
		uint8_t frame[64];

		CHECK(due >= last);
		behind = due == last ? behind + 1 : 0;
		CHECK(behind < f.layers);
		CHECK_EQ(slots_before(&f.slots, due), n - behind);
		frame_write(frame, &a, 0, 18, n);
		CHECK(fronthaul_symbol(&f, frame, due, &s));
		CHECK_EQ(fronthaul_air(&f, &s) - due, f.t1a[s.plane].most_ns);
		CHECK_EQ(slots_size(&f.slots, n),
			 s.plane == FRONTHAUL_C ? 60 : slots_size_max(&f.slots));
		CHECK(s.plane == FRONTHAUL_U || s.symbol == 0);
		c_plane += s.plane == FRONTHAUL_C;
		last = due;
	}
	CHECK_EQ(c_plane, 5 * f.layers);
}

/* By hand, from O-RAN.WG4.CUS: symbol 13 of slot 1 of subframe 9 of frame 255, and the C-plane. */
static void frames(void)
{
	static const uint8_t u_plane[] =
		{2, 4, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		 /* the tag, eCPRI, eAxC ID and sequence ID */
		 0x81, 0, 0xe0, 7, 0xae, 0xfe, 0x10, 0, 0, 12 + 2 * 28, 0, 1, 0xfe, 0x80,
		 /* downlink, frame, subframe, slot and symbol, and section */
		 0x90, 255, 0x90, 0x4d, 0, 0, 0, 2},
			     c_plane[] = {/* eCPRI, eAxC ID and sequence ID */
					  0x10, 2, 0, 20, 0, 1, 0xfe, 0x80,
					  /* the time, one section of type 1, of all symbols */
					  0x90, 255, 0x90, 0x40, 1, 1, 0, 0, 0, 0, 0, 2, 0xff, 0xfe,
					  0, 0};
	struct fronthaul f =
		example("scs=30,prb=2,layers=2,vlan=7,t1a-cp=0-1,t1a-up=0-1,t2a-cp=0-1");
	struct frame_address a = {.to_mac = {2, 4, 6}, .fronthaul = &f};
	uint64_t slot = 5119 + 5120;
	uint8_t frame[200] = {0}, turned[200];
	uint32_t headers;

	/* In a period there are symbols 1 to 13, and the C-plane and symbol 0 of the next slot. */
	memset(frame, 0x77, sizeof(frame));
	frame_write(frame, &a, 0, 48, slot * 30 + 25);
	CHECK(memcmp(frame, u_plane, sizeof(u_plane)) == 0);
	CHECK(memcmp(frame + 34, (const uint8_t[8]){0}, 8) == 0 && frame[42] == 0x77);
	CHECK_EQ(frame_payload(frame, 90, &headers), 48);
	CHECK_EQ(headers, 42);
	for (uint32_t n = 0; n < 90; n++)
		CHECK_EQ(frame_payload(frame, n, &headers), 0);
	CHECK_EQ(frame_payload(frame, 100, &headers), 48); /* padding */
	memcpy(turned, frame, sizeof(frame));
	frame_turn(turned, 42);
	CHECK(turned[6] == 2 && turned[0] == 0 && memcmp(turned + 12, frame + 12, 188) == 0);
	frame_write(frame, &a, 0, 18, (slot - 1) * 30 + 27);
	CHECK(memcmp(frame + 18, c_plane, sizeof(c_plane)) == 0);
	CHECK_EQ(frame_payload(frame, 60, &headers), 18);
	frame[21]++;
	CHECK_EQ(frame_payload(frame, 60, &headers), 0); /* not one section */
	frame_write(frame, &a, 0, 56, SLOTS_NO_NUMBER);
	CHECK_EQ(frame[19], 64);
	CHECK_EQ(frame_payload(frame, 98, &headers), 56);
	CHECK_EQ(frame_payload(frame, 97, &headers), 0);
	frame[18] = 0x11; /* another message follows */
	CHECK_EQ(frame_payload(frame, 98, &headers), 0);
}

/* The sequence IDs of a plane and layer count up by one. */
static void sequences(void)
{
	struct fronthaul f = example("scs=120,layers=3");
	struct frame_address a = {.fronthaul = &f};
	uint8_t next[FRONTHAUL_PLANES][3] = {0};
	bool begun[FRONTHAUL_PLANES][3] = {0};

	for (uint64_t n = 1000; n < 40000; n++) {
		uint8_t frame[64], layer, sequence, *want;
		struct fronthaul_symbol s;

		frame_write(frame, &a, 0, 18, n);
		CHECK(fronthaul_symbol(&f, frame, 0, &s));
		layer = frame[23];
		sequence = frame[24];
		want = &next[s.plane][layer];
		CHECK(!begun[s.plane][layer] || sequence == *want);
		begun[s.plane][layer] = true;
		*want = sequence + 1;
	}
}

/* Frame numbers repeat after 2.56 s: the nearest slot is meant, in the past or the future. */
static void nearest(void)
{
	struct fronthaul f = example("scs=30,layers=1");
	struct frame_address a = {.fronthaul = &f};
	uint8_t frame[64];
	struct fronthaul_symbol s;

	for (uint64_t slot = 20000; slot < 30000; slot += 37) {
		frame_write(frame, &a, 0, 18, slot * 15 + 3);
		for (int off = -2500; off <= 2500; off += 500) {
			uint64_t now = (slot + (uint64_t)off) * SLOT;

			CHECK(fronthaul_symbol(&f, frame, now, &s));
			CHECK(s.slot >= slot && s.slot <= slot + 1);
		}
	}
	frame[29] |= 0x3f;
	CHECK(!fronthaul_symbol(&f, frame, 0, &s));
	frame_write(frame, &a, 0, 18, SLOTS_NO_NUMBER);
	CHECK(!fronthaul_symbol(&f, frame, 0, &s));
}

/* One message at a time relative to its symbol on air, in us: before it are negative ones. */
static struct windows_kind judged(uint64_t number, int64_t sent_us, int64_t arrived_us)
{
	static struct fronthaul f;
	static struct windows w;
	struct frame_address a = {.fronthaul = &f};
	uint8_t frame[64];
	struct io_buf buf = {.data = frame + 42, .length = 18, .headers = 42};
	struct fronthaul_symbol s;
	struct packet packet = {0};
	uint64_t air;

	f = example("scs=30,layers=1");
	w = (struct windows){.fronthaul = &f};
	frame_write(frame, &a, 0, 18, number);
	CHECK(fronthaul_symbol(&f, frame, slots_due(&f.slots, number), &s));
	air = fronthaul_air(&f, &s);
	packet.intended = slots_due(&f.slots, number);
	packet.sent = air + (uint64_t)(sent_us * 1000);
	windows_judge(&w, &buf, &packet, air + (uint64_t)(arrived_us * 1000));
	buf.headers = 50; /* another kind of frame */
	windows_judge(&w, &buf, &packet, air);
	return w.kinds[s.plane];
}

static void windows(void)
{
	struct fronthaul f = example("scs=30,layers=1");
	uint64_t c_plane = slots_first(&f.slots, 9 * SLOT), u_plane = c_plane + 1;
	struct windows_kind p;

	p = judged(u_plane, -196, -428);
	CHECK(p.on_time == 1 && p.early + p.late + p.sent_late == 0 && p.after_opening.max == 0);
	p = judged(u_plane, -196, -429);
	CHECK(p.early == 1 && p.on_time + p.late + p.sent_late + p.after_opening.n == 0);
	p = judged(u_plane, -96, -71);
	CHECK(p.on_time == 1 && p.after_opening.max == 357000);
	p = judged(u_plane, -96, -70);
	CHECK(p.late == 1 && p.on_time + p.early + p.sent_late == 0 && p.after_opening.n == 1);
	p = judged(u_plane, -95, 100);
	CHECK(p.sent_late == 1 && p.on_time + p.early + p.late == 0);
	p = judged(c_plane, -429, -285);
	CHECK(p.on_time == 1 && p.late == 0);
	p = judged(c_plane, -285, -284);
	CHECK(p.late == 1);
	p = judged(c_plane, -284, -284);
	CHECK(p.sent_late == 1);
	p = judged(u_plane, -196, 5000000); /* of which slot does not depend on when it came */
	CHECK(p.late == 1);
}

/* The sender's schedule: whole symbols, sizes, and what is too late. */
static void schedule(void)
{
	struct options o = {.fronthaul = example("scs=30"), .size = 7678};
	struct schedule s;
	uint64_t begin;

	o.rate.per_second = slots_rate(&o.fronthaul.slots);
	s = schedule_begin(&o, 12345678);
	begin = schedule_due(&s);
	CHECK(begin >= 12345678 && begin < 12345678 + 2 * SLOT);
	CHECK_EQ(schedule_burst(&s), 4);
	CHECK_EQ(schedule_size(&s, 3), 60);
	CHECK_EQ(schedule_size(&s, 4), 7678);
	CHECK_EQ(schedule_overdue(&s, begin), 0);
	CHECK_EQ(schedule_overdue(&s, begin + 1), 4);
	CHECK_EQ(schedule_overdue(&s, begin + 2 * SLOT), 120);
	schedule_pass(&s, 1);
	CHECK_EQ(schedule_burst(&s), 3);
	CHECK_EQ(schedule_due(&s), begin);
	schedule_pass(&s, 59);
	CHECK_EQ(schedule_due(&s), begin + SLOT);
	CHECK_EQ(schedule_overdue(&s, begin + 1), 0);
}

int main(void)
{
	options();
	in_order("scs=15,layers=1,prb=1");
	in_order("scs=30");
	in_order("scs=120,layers=16,prb=66");
	in_order("scs=60,t1a-cp=0-1,t1a-up=0-700,t2a-cp=0-1,t2a-up=0-1,layers=2");
	frames();
	sequences();
	nearest();
	windows();
	schedule();
	return 0;
}
