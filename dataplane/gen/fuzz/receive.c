/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz a receiver: the input is frames of two bytes of length and what follows, whose checksums are put right half of the time. What must hold: accounts balance, whatever
 * came, and a reply can be written to what was taken.
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

static void one(struct tracker *t, uint8_t *frame, uint32_t length, uint64_t now, bool right, bool ip6)
{
	struct frame_address address = {.ip6 = ip6, .to_port = FRAME_PORT};
	uint32_t payload, headers = frame_headers(ip6);
	struct packet p;

	if (right && length >= headers) {
		frame_write(frame, &address, FRAME_PORT, length - headers);
		put_right(frame + headers, length - headers);
	}
	payload = frame_payload(frame, length, &headers);
	must(payload == 0 || payload + headers <= length);
	t->headers = headers;
	if (tracker_take(t, frame + headers, payload, now, &p)) {
		must(packet_is_short(&p) == (payload < PACKET_HEADER));
		p.type = p.type == PACKET_DATA || p.type == PACKET_REPLY ? PACKET_REPLY : PACKET_END_REPLY;
		p.turned = now;
		packet_write(frame + headers, &p);
		must(packet_read(frame + headers, payload, false, &p) == PACKET_GOOD);
		frame_turn(frame, headers);
		frame_finish(frame, headers, payload);
	}
}

static void check(const struct tracker *t, uint64_t frames)
{
	const struct tracker_counts *c = &t->counts;
	uint64_t all = c->received + c->duplicates + c->stale + c->warmup + c->foreign + c->corrupt + c->other_stream;

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
		bool right = data[1] & 0x80, ip6 = data[1] & 0x40;

		data += 2;
		size -= 2;
		length = length < size ? length : (uint32_t)size;
		frame = malloc(length + 1); /* of just that size: what is read beyond is noticed */
		must(frame != NULL);
		memcpy(frame, data, length);
		one(t, frame, length, 1000000 + frames, right, ip6);
		free(frame);
		frames++;
		data += length;
		size -= length;
	}
	check(t, frames);
	free(t);
	return 0;
}
