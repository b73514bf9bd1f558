/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz a receiver: the input is frames of two bytes of length and what follows, whose headers and
 * checksums are put right half of the time, in one of the encapsulations. An input of some lengths
 * is messages of FAPI instead, a part of which are longer than 65,535 bytes. What must hold:
 * accounts balance, whatever came, a burst is taken as its frames would be one by one, and a reply
 * can be written to what was taken, which is then read in the same way.
 */
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "frame.h"
#include "tracker.h"

#define FRAME 512u
#define LONG 0x10000u /* bytes of zeros at the end of some messages */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(int condition)
{
	if (!condition)
		abort();
}

static void put_right_short(uint8_t *datagram, uint32_t length)
{
	uint32_t sum;

	if (length < PACKET_SHORT)
		return;
	datagram[0] = 0xdc;
	datagram[1] = 0x21 | (datagram[1] & 0x12);
	memset(datagram + 16, 0, 2);
	sum = crc32c(datagram, length);
	sum ^= sum >> 16;
	memcpy(datagram + 16, &sum, 2);
}

/* So that the fuzzer gets beyond the checksum. */
static void put_right(uint8_t *datagram, uint32_t length)
{
	uint8_t begin[] = {'D', 'G', 'E', 'N', PACKET_VERSION};
	uint8_t bytes[] = {(uint8_t)length, (uint8_t)(length >> 8), (uint8_t)(length >> 16)};
	uint32_t sum;

	if (length < PACKET_HEADER) {
		put_right_short(datagram, length);
		return;
	}
	if (length > UINT16_MAX) {
		begin[4] = PACKET_VERSION_LONG;
		memcpy(datagram + 13, bytes, 3);
	} else {
		memcpy(datagram + 14, bytes, 2);
	}
	memcpy(datagram, begin, sizeof(begin));
	sum = crc32c(datagram + PACKET_HEADER, length - PACKET_HEADER);
	memcpy(datagram + 48, &sum, sizeof(sum));
	sum = crc32c(datagram, 52);
	memcpy(datagram + 52, &sum, sizeof(sum));
}

/* What is around the datagram, as three bits of the input choose it. */
static const struct encap *encapsulation(uint8_t bits)
{
	static const struct encap all[] = {
		{.kind = ENCAP_NONE, .spread = ENCAP_SPREAD_TO},
		{.kind = ENCAP_QINQ, .tag = 128, .user = 77},
		{.kind = ENCAP_GRE_MPLS,
		 .tag = 3,
		 .user = 70000,
		 .from = 0xc6120102,
		 .to = 0xc6120101,
		 .spread = ENCAP_SPREAD_FROM},
		{.kind = ENCAP_GTPU, .user = 9999, .from = 0xc6120002, .to = 0xc6120001},
		{.kind = ENCAP_GTPU, .user = 1, .container = true, .qfi = 9},
		{.kind = ENCAP_GTPU, .user = 1, .container = true, .qfi = 63, .downlink = true},
		{.kind = ENCAP_GTPU, .user = 1, .tunnels = 10000, .nru = true},
	};
	unsigned which = bits & 7;

	return which < sizeof(all) / sizeof(*all) ? &all[which] : NULL;
}

static struct fronthaul fronthaul;
static struct fapi fapi;

/* One that goes back is read as what it was. */
static void turn(uint8_t *frame, uint32_t length, uint32_t headers, uint32_t payload)
{
	uint32_t again;

	frame_turn(frame, headers);
	frame_finish(frame, headers, payload);
	must(frame_payload(frame, length, &again) == payload && again == headers);
}

struct receiver {
	struct tracker *bursts, *alone;
	struct frame_seen seen;
	struct io_buf bufs[IO_BATCH];
	uint32_t lengths[IO_BATCH]; /* of the frames */
	unsigned n;
	uint64_t frames;
	bool fapi;
};

static void append(struct receiver *r, uint8_t *frame, uint32_t length, uint32_t headers,
		   uint32_t payload)
{
	must(payload == 0 || payload + headers <= length);
	r->lengths[r->n] = length;
	r->bufs[r->n++] =
		(struct io_buf){.data = frame + headers, .length = payload, .headers = headers};
	r->frames++;
}

/* Append a message of FAPI to the burst. */
static void add_message(struct receiver *r, uint8_t *message, uint32_t length, uint8_t bits)
{
	struct frame_address address = {.fapi = &fapi};

	if (bits & 0x80 && length > FAPI_HEADERS) {
		frame_write(message, &address, 0, length - FAPI_HEADERS, bits);
		put_right(message + FAPI_HEADERS, length - FAPI_HEADERS);
		must(fapi_payload(message, length) == length - FAPI_HEADERS);
	}
	append(r, message, length, FAPI_HEADERS, fapi_payload(message, length));
}

/* Append a frame to the burst. */
static void add(struct receiver *r, uint8_t *frame, uint32_t length, uint8_t bits)
{
	struct frame_address address = {
		.ip6 = bits & 0x40, .to_port = FRAME_PORT, .encap = encapsulation(bits >> 1)};
	uint32_t payload, headers = frame_headers_to(&address), again;
	struct frame_like like;

	if (bits >> 1 == 0x7f) {
		address.fronthaul = &fronthaul;
		address.encap = NULL;
		headers = FRAME_HEADERS;
	}
	if (bits & 0x80 && length >= headers) {
		frame_write(frame, &address, FRAME_PORT + (bits >> 4 & 3), length - headers, bits);
		put_right(frame + headers, length - headers);
		must(length == headers ||
		     (frame_payload(frame, length, &payload) == length - headers &&
		      payload == headers));
	}
	like = frame_like(&r->seen);
	payload = frame_payload(frame, length, &headers);
	if (frame_is_like(&like, frame, length))
		must(payload == r->seen.payload && headers == FRAME_HEADERS);
	must(frame_find(&r->seen, frame, length, &again) == payload && again == headers);
	append(r, frame, length, headers, payload);
}

/* Answer a run of packets that were taken. */
static void answer(struct io_buf *bufs, const uint32_t *lengths, unsigned n, struct packet p,
		   uint64_t now)
{
	enum packet_verdict verdict;
	struct packet again;

	must(packet_is_short(&p) == (bufs->length < PACKET_HEADER));
	p.type = p.type == PACKET_DATA || p.type == PACKET_REPLY ? PACKET_REPLY : PACKET_END_REPLY;
	p.turned = now;
	packet_write(&p, bufs, n);
	must(packet_read(bufs, n, false, &again, &verdict) == n && verdict == PACKET_GOOD);
	for (unsigned i = 0; i < n && bufs->headers != FAPI_HEADERS; i++)
		turn(bufs[i].data - bufs[i].headers, lengths[i], bufs[i].headers, bufs[i].length);
}

/* Take the burst. */
static void take(struct receiver *r)
{
	uint64_t now = 1000000 + r->frames;
	struct packet first;
	bool wanted;

	for (unsigned i = 0; i < r->n; i++)
		tracker_take_all(r->alone, &r->bufs[i], 1, now);
	for (unsigned i = 0, run; i < r->n; i += run) {
		run = tracker_take(r->bursts, r->bufs + i, r->n - i, now, &first, &wanted);
		must(run >= 1 && run <= r->n - i);
		if (wanted)
			answer(r->bufs + i, r->lengths + i, run, first, now);
	}
	for (unsigned i = 0; i < r->n; i++)
		free(r->bufs[i].data - r->bufs[i].headers);
	r->n = 0;
	must(memcmp(&r->bursts->counts, &r->alone->counts, sizeof(r->alone->counts)) == 0);
	must(r->bursts->next == r->alone->next &&
	     tracker_jitter(r->bursts) == tracker_jitter(r->alone) &&
	     r->bursts->delay.sum == r->alone->delay.sum);
}

static uint64_t judged(const struct windows_kind *p)
{
	must(p->after_opening.n == p->on_time + p->late);
	return p->early + p->on_time + p->late + p->sent_late;
}

static void check(const struct tracker *t, uint64_t frames)
{
	const struct tracker_counts *c = &t->counts;
	uint64_t all = c->received + c->duplicates + c->stale + c->warmup + c->foreign +
		       c->corrupt + c->other_stream + t->bulk_received;

	/* what ends a stream is not counted, nor the warm-up of a bulk stream */
	must(all <= frames && (t->end_seen || t->has_bulk || all == frames));
	must(t->delay.n + c->clock_errors == c->received);
	must(tracker_expected(t) >= c->received);
	must(c->reordered <= c->received);
	must(judged(&t->windows.kinds[0]) + judged(&t->windows.kinds[1]) <= c->received);
}

static struct tracker *begin(size_t bits)
{
	struct tracker *t = tracker_new(0);

	must(t != NULL);
	t->check = bits & 1;
	t->windows.fronthaul = bits & 4 && !(bits & 8) ? &fronthaul : NULL;
	t->windows.fapi = bits & 8 ? &fapi : NULL;
	t->replies = bits & 2;
	return t;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct receiver r;

	must(fronthaul_read("scs=30", &fronthaul) == NULL && fapi_read("scs=30", &fapi) == NULL);
	r = (struct receiver){.bursts = begin(size), .alone = begin(size), .fapi = size & 8};

	while (size >= 2) {
		uint32_t length = (data[0] | (uint32_t)data[1] << 8) % FRAME;
		uint8_t bits = data[1], *frame;
		uint32_t zeros = r.fapi && bits & 2 ? LONG : 0;

		data += 2;
		size -= 2;
		length = length < size ? length : (uint32_t)size;
		/* of just that size: what is read beyond is noticed */
		frame = malloc(length + zeros + 1);
		must(frame != NULL);
		memcpy(frame, data, length);
		memset(frame + length, 0, zeros);
		if (r.fapi)
			add_message(&r, frame, length + zeros, bits);
		else
			add(&r, frame, length, bits);
		if (r.n == IO_BATCH || bits & 1)
			take(&r);
		data += length;
		size -= length;
	}
	take(&r);
	check(r.bursts, r.frames);
	free(r.bursts);
	free(r.alone);
	return 0;
}
