/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz a receiver: the input is frames of two bytes of length and what follows, whose headers and
 * checksums are put right half of the time, in one of the encapsulations. What must hold: accounts
 * balance, whatever came, and a reply can be written to what was taken, which is then read in the
 * same way.
 */
#include <stdlib.h>
#include <string.h>

#include "crc32c.h"
#include "frame.h"
#include "tracker.h"

#define FRAME 512u

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
	static const uint8_t begin[] = {'D', 'G', 'E', 'N', PACKET_VERSION};
	uint16_t bytes = (uint16_t)length;
	uint32_t sum;

	if (length < PACKET_HEADER) {
		put_right_short(datagram, length);
		return;
	}
	memcpy(datagram, begin, sizeof(begin));
	memcpy(datagram + 14, &bytes, sizeof(bytes));
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
	};
	unsigned which = bits & 7;

	return which < sizeof(all) / sizeof(*all) ? &all[which] : NULL;
}

/* One that goes back is read as what it was. */
static void turn(uint8_t *frame, uint32_t length, uint32_t headers, uint32_t payload)
{
	uint32_t again;

	frame_turn(frame, headers);
	frame_finish(frame, headers, payload);
	must(frame_payload(frame, length, &again) == payload && again == headers);
}

static void one(struct tracker *t, uint8_t *frame, uint32_t length, uint64_t now, uint8_t bits)
{
	struct frame_address address = {
		.ip6 = bits & 0x40, .to_port = FRAME_PORT, .encap = encapsulation(bits >> 1)};
	uint32_t payload, headers = frame_headers_to(&address);
	struct packet p;

	if (bits & 0x80 && length >= headers) {
		frame_write(frame, &address, FRAME_PORT + (bits >> 4 & 3), length - headers);
		put_right(frame + headers, length - headers);
		must(length == headers ||
		     (frame_payload(frame, length, &payload) == length - headers &&
		      payload == headers));
	}
	payload = frame_payload(frame, length, &headers);
	must(payload == 0 || payload + headers <= length);
	t->headers = headers;
	if (tracker_take(t, frame + headers, payload, now, &p)) {
		must(packet_is_short(&p) == (payload < PACKET_HEADER));
		p.type = p.type == PACKET_DATA || p.type == PACKET_REPLY ? PACKET_REPLY
									 : PACKET_END_REPLY;
		p.turned = now;
		packet_write(frame + headers, &p);
		must(packet_read(frame + headers, payload, false, &p) == PACKET_GOOD);
		turn(frame, length, headers, payload);
	}
}

static void check(const struct tracker *t, uint64_t frames)
{
	const struct tracker_counts *c = &t->counts;
	uint64_t all = c->received + c->duplicates + c->stale + c->warmup + c->foreign +
		       c->corrupt + c->other_stream;

	must(all <= frames && (t->end_seen || all == frames));
	must(t->delay.n + c->clock_errors == c->received);
	must(tracker_expected(t) >= c->received);
	must(c->reordered <= c->received);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct tracker *t = tracker_new(0);
	uint64_t frames = 0;
	uint8_t *frame;

	must(t != NULL);
	t->check = size & 1;
	t->replies = size & 2;
	while (size >= 2) {
		uint32_t length = (data[0] | (uint32_t)data[1] << 8) % FRAME;
		uint8_t bits = data[1];

		data += 2;
		size -= 2;
		length = length < size ? length : (uint32_t)size;
		frame = malloc(length + 1); /* of just that size: what is read beyond is noticed */
		must(frame != NULL);
		memcpy(frame, data, length);
		one(t, frame, length, 1000000 + frames, bits);
		free(frame);
		frames++;
		data += length;
		size -= length;
	}
	check(t, frames);
	free(t);
	return 0;
}
