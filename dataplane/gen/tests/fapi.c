/* SPDX-License-Identifier: Apache-2.0 */
/* FAPI's options, schedule, messages and windows. */
#include "fapi.h"

#include "frame.h"
#include "schedule.h"
#include "support.h"
#include "windows.h"

#define SLOT 500000ull /* ns, at 30 kHz */

static struct fapi example(const char *text)
{
	struct fapi f;

	CHECK(fapi_read(text, &f) == NULL);
	return f;
}

static void options(void)
{
	static const char *const bad[] = {"",
					  "tx-data=2048",
					  "scs=60",
					  "scs=31",
					  "scs=30,dl-tti=127",
					  "scs=30,tx-data=4194305",
					  "scs=30,within=0",
					  "scs=30,within=10001",
					  "scs=30,scs=30",
					  "scs=30,dl-tti=4194305",
					  "scs=30,prb=51",
					  "scs",
					  "scs=30,within=1-2"};
	struct fapi f;

	for (unsigned i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		CHECK(fapi_read(bad[i], &f) != NULL);
	f = example("scs=30");
	CHECK(f.dl_tti == 2048 && f.tx_data == 115000 && f.within_ns == SLOT);
	CHECK_EQ(f.slots.slot_ns, SLOT);
	CHECK_EQ(slots_rate(&f.slots), 4000);
	CHECK_EQ(slots_size_max(&f.slots), 115000);
	f = example("scs=120,dl-tti=4194304,tx-data=128,within=10000");
	CHECK(f.slots.slot_ns == 125000 && f.within_ns == 10000000);
	CHECK_EQ(slots_size_max(&f.slots), 4u << 20);
	f = example("scs=15");
	CHECK_EQ(slots_rate(&f.slots), 2000);
}

/* Both messages of a slot are due when it begins: first DL_TTI, whose number is even. */
static void schedule(void)
{
	struct options o = {.fapi = example("scs=30"), .size = 115000};
	struct schedule s;

	o.rate.per_second = slots_rate(&o.fapi.slots);
	s = schedule_begin(&o, 7 * SLOT + 1);
	CHECK_EQ(schedule_due(&s), 8 * SLOT);
	CHECK_EQ(schedule_number(&s), 16);
	CHECK_EQ(schedule_burst(&s), 2);
	CHECK_EQ(schedule_size(&s, 0), 2048);
	CHECK_EQ(schedule_size(&s, 1), 115000);
	CHECK_EQ(schedule_interval(&s), SLOT);
	CHECK_EQ(schedule_overdue(&s, 8 * SLOT), 0);
	CHECK_EQ(schedule_overdue(&s, 8 * SLOT + 1), 2);
	CHECK_EQ(schedule_overdue(&s, 10 * SLOT), 4);
	schedule_pass(&s, 1);
	CHECK_EQ(schedule_burst(&s), 1);
	CHECK_EQ(schedule_due(&s), 8 * SLOT);
	schedule_pass(&s, 1);
	CHECK_EQ(schedule_due(&s), 9 * SLOT);
}

/* By hand: slot 19 of SFN 1023, whose numbers begin again after it, and an end packet. */
static void messages(void)
{
	static const uint8_t dl_tti[] = {1, 0, 0x80, 0, 120, 0, 0, 0, 0xff, 3, 19, 0},
			     tx_data[] = {1, 0, 0x84, 0, 0x04, 0x00, 0x02, 0, 0, 0, 0, 0},
			     end[] = {1, 0, 0, 3, 60, 0, 0, 0, 0, 0, 0, 0};
	struct fapi f = example("scs=30");
	struct frame_address a = {.fapi = &f};
	uint8_t m[FAPI_HEADERS + 1] = {[FAPI_HEADERS] = 0x77};
	uint64_t slot = 5 * 20480 + 20479;

	CHECK_EQ(frame_headers_to(&a), FAPI_HEADERS);
	CHECK(frame_varies(&a));
	frame_write(m, &a, 0, 116, 2 * slot);
	CHECK(memcmp(m, dl_tti, sizeof(dl_tti)) == 0 && m[FAPI_HEADERS] == 0x77);
	CHECK_EQ(fapi_payload(m, 128), 116);
	frame_write(m, &a, 0, 0x20000, 2 * slot + 3);
	CHECK(memcmp(m, tx_data, sizeof(tx_data)) == 0);
	CHECK_EQ(fapi_payload(m, 0x2000c), 0x20000);
	frame_write(m, &a, 0, 56, SLOTS_NO_NUMBER);
	CHECK(memcmp(m, end, sizeof(end)) == 0);
	CHECK_EQ(fapi_payload(m, 68), 56);
}

/* A length that is not the message's, or another header: no payload. */
static void hostile(void)
{
	static const uint8_t types[] = {0, 0x81, 0x82, 0x85, 0xff};
	struct fapi f = example("scs=30");
	uint8_t *m, good[FAPI_HEADERS];

	fapi_write(good, &f, 116, 40);
	for (uint32_t n = 0; n < 200; n++) {
		m = malloc(n); /* of just that size: what is read beyond is noticed */
		memcpy(m, good, n < FAPI_HEADERS ? n : FAPI_HEADERS);
		CHECK_EQ(fapi_payload(m, n), n == 128 ? 116 : 0);
		free(m);
	}
	for (uint32_t i = 0; i < 32; i++) {
		good[4 + i / 8] ^= (uint8_t)(1u << i % 8);
		CHECK_EQ(fapi_payload(good, 128), 0);
		good[4 + i / 8] ^= (uint8_t)(1u << i % 8);
	}
	for (unsigned i = 0; i < sizeof(types); i++) {
		good[2] = types[i];
		CHECK_EQ(fapi_payload(good, 128), 0);
	}
	good[2] = 0x80;
	CHECK_EQ(fapi_payload(good, 128), 116);
	good[0] = 2;
	CHECK_EQ(fapi_payload(good, 128), 0);
}

/* SFN repeat after 10.24 s: the nearest slot is meant. What is no slot has no window. */
static void nearest(const char *text)
{
	struct fapi f = example(text);
	uint64_t length = f.slots.slot_ns, all = 1024 * 10ull * f.scs / 15;
	uint8_t m[FAPI_HEADERS];
	struct slots_window w;

	for (uint64_t slot = all; slot < 3 * all; slot += 37) {
		for (unsigned kind = 0; kind < FAPI_KINDS; kind++) {
			fapi_write(m, &f, 116, 2 * slot + kind);
			for (int64_t off = -(int64_t)all / 2 + 1; off < (int64_t)all / 2;
			     off += 501) {
				CHECK(fapi_window(&f, m, (slot + (uint64_t)off) * length, &w));
				CHECK(w.kind == kind && w.opens == slot * length);
				CHECK(w.closes == w.opens + f.within_ns && w.send_by == w.closes);
			}
		}
	}
	m[10] = (uint8_t)(10 * f.scs / 15); /* slots in a frame */
	CHECK(!fapi_window(&f, m, 0, &w));
	fapi_write(m, &f, 116, 0);
	CHECK(fapi_window(&f, m, 0, &w));
	m[9] = 4; /* SFN 1024 */
	CHECK(!fapi_window(&f, m, 0, &w));
	fapi_write(m, &f, 56, SLOTS_NO_NUMBER);
	CHECK(!fapi_window(&f, m, 0, &w));
}

/* One message, sent and arrived so many ns after its slot began. */
static struct windows judged(uint64_t number, uint64_t sent, uint64_t arrived)
{
	static struct fapi f;
	struct windows w = {.fapi = &f};
	uint8_t m[FAPI_HEADERS + 116];
	struct io_buf buf = {.data = m + FAPI_HEADERS, .length = 116, .headers = FAPI_HEADERS};
	uint64_t begins = number / 2 * SLOT;
	struct packet packet = {.intended = begins, .sent = begins + sent};

	f = example("scs=30,within=300");
	fapi_write(m, &f, 116, number);
	windows_judge(&w, &buf, &packet, begins + arrived);
	buf.headers = FRAME_HEADERS; /* not a message */
	windows_judge(&w, &buf, &packet, begins);
	return w;
}

static void windows(void)
{
	struct windows w = judged(40, 0, 0);
	struct windows_kind *dl_tti = &w.kinds[FAPI_DL_TTI], *tx_data = &w.kinds[FAPI_TX_DATA];

	CHECK(dl_tti->on_time == 1 && dl_tti->after_opening.n == 1 && tx_data->on_time == 0);
	CHECK_EQ(windows_missed(&w), 0);
	w = judged(41, 300000, 300000);
	CHECK(tx_data->on_time == 1 && tx_data->after_opening.max == 300000);
	w = judged(41, 300000, 300001);
	CHECK(tx_data->late == 1 && tx_data->on_time + tx_data->early + tx_data->sent_late == 0);
	CHECK_EQ(windows_missed(&w), 1);
	w = judged(41, 300001, 300001);
	CHECK(tx_data->sent_late == 1 && tx_data->on_time + tx_data->early + tx_data->late == 0);
	CHECK_EQ(windows_missed(&w), 0);
	w = judged(40, 1000, 9000000); /* of which slot does not depend on when it came */
	CHECK(dl_tti->late == 1 && dl_tti->after_opening.max == 9000000);
}

int main(void)
{
	options();
	schedule();
	messages();
	hostile();
	nearest("scs=30");
	nearest("scs=120,within=7");
	windows();
	return 0;
}
