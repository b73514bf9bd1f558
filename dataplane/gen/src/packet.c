/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading draygen's packets. */
#include "packet.h"

#include <assert.h>
#include <endian.h>
#include <stddef.h>
#include <string.h>

#include "crc32c.h"

struct header {
	uint32_t magic;
	uint8_t version, type;
	uint16_t flags;
	uint32_t stream;
	uint16_t flow, length;
	uint64_t sequence, intended, sent, turned;
	uint32_t payload_sum, checksum;
};

static_assert(sizeof(struct header) == PACKET_HEADER, "the header has no padding");
static_assert(offsetof(struct header, sequence) == 16 && offsetof(struct header, turned) == 40,
	      "as in README.md");
static_assert(offsetof(struct header, payload_sum) == 48 && offsetof(struct header, checksum) == 52,
	      "as in README.md");

static void write_whole(uint8_t *to, const struct packet *p)
{
	struct header h = {
		.magic = htole32(PACKET_MAGIC),
		.version = PACKET_VERSION,
		.type = p->type,
		.flags = htole16(p->flags),
		.stream = htole32(p->stream),
		.flow = htole16(p->flow),
		.length = htole16(p->length),
		.sequence = htole64(p->sequence),
		.intended = htole64(p->intended),
		.sent = htole64(p->sent),
		.turned = htole64(p->turned),
		.payload_sum = htole32(p->payload_sum),
	};

	h.checksum = htole32(crc32c(&h, offsetof(struct header, checksum)));
	memcpy(to, &h, sizeof(h));
}

/* The short header, by offset; its sum does not cover itself. */
enum { MAGIC = 0, KIND = 1, STREAM = 2, FLOW = 3, SEQUENCE = 4, SENT = 8, LATE = 14, SUM = 16 };

#define SHORT_MAGIC 0xdcu
#define KIND_VERSION 0x20u /* 1; the type is added */
#define KIND_WARMUP 0x10u
#define KIND_REPLY (PACKET_DATA ^ PACKET_REPLY)

static_assert(SUM + 2 == PACKET_SHORT, "as in README.md");

/* Lateness: 5 bits of exponent and 11 of mantissa. */
#define LATE_BITS 11
#define LATE_MANTISSA ((1u << LATE_BITS) - 1)
#define LATE_MAX ((uint64_t)LATE_MANTISSA << 31)

/* Rounded up: exact to 2047 ns, then to a thousandth. */
static uint16_t late_write(uint64_t ns)
{
	unsigned shift;
	uint64_t mantissa;

	if (ns <= LATE_MANTISSA)
		return (uint16_t)ns;
	if (ns > LATE_MAX)
		return UINT16_MAX;
	shift = 64 - LATE_BITS - (unsigned)__builtin_clzll(ns);
	mantissa = (ns + (1ull << shift) - 1) >> shift;
	if (mantissa > LATE_MANTISSA) {
		mantissa /= 2;
		shift++;
	}
	return (uint16_t)(shift << LATE_BITS | mantissa);
}

static uint64_t late_read(uint16_t late)
{
	return (uint64_t)(late & LATE_MANTISSA) << (late >> LATE_BITS);
}

/* The sum of a copy of the header, with the sum's own field set to 0. */
static uint16_t short_sum(uint8_t *copy, uint32_t length)
{
	uint32_t crc;

	memset(copy + SUM, 0, 2);
	crc = crc32c(copy, length);
	return (uint16_t)(crc >> 16 ^ crc);
}

static void write_short(uint8_t *to, const struct packet *p)
{
	uint32_t sequence = htole32((uint32_t)p->sequence);
	uint64_t sent = htole64(p->sent);
	uint16_t late = htole16(late_write(p->sent - p->intended)), sum;
	uint8_t h[PACKET_HEADER];

	memcpy(h, to, p->length);
	h[MAGIC] = SHORT_MAGIC;
	h[KIND] = (uint8_t)(KIND_VERSION | p->type | (p->flags & PACKET_WARMUP ? KIND_WARMUP : 0));
	h[STREAM] = (uint8_t)p->stream;
	h[FLOW] = (uint8_t)p->flow;
	memcpy(h + SEQUENCE, &sequence, 4);
	memcpy(h + SENT, &sent, 6);
	memcpy(h + LATE, &late, 2);
	sum = htole16(short_sum(h, p->length));
	memcpy(h + SUM, &sum, 2);
	memcpy(to, h, PACKET_SHORT);
}

static enum packet_verdict read_short(const uint8_t *datagram, uint32_t length, struct packet *p)
{
	uint8_t h[PACKET_HEADER];
	uint64_t sent = 0;
	uint32_t sequence;
	uint16_t late, sum;

	memcpy(h, datagram, length);
	if (h[MAGIC] != SHORT_MAGIC ||
	    (h[KIND] & ~(KIND_WARMUP | KIND_REPLY)) != (KIND_VERSION | PACKET_DATA))
		return PACKET_FOREIGN;
	memcpy(&sum, h + SUM, 2);
	if (le16toh(sum) != short_sum(h, length))
		return PACKET_CORRUPT;
	memcpy(&sequence, h + SEQUENCE, 4);
	memcpy(&sent, h + SENT, 6);
	memcpy(&late, h + LATE, 2);
	*p = (struct packet){
		.type = h[KIND] & PACKET_REPLY,
		.flags = h[KIND] & KIND_WARMUP ? PACKET_WARMUP : 0,
		.flow = h[FLOW],
		.length = (uint16_t)length,
		.stream = h[STREAM],
		.sequence = le32toh(sequence),
		.sent = le64toh(sent),
	};
	p->intended = p->sent - late_read(le16toh(late));
	return PACKET_GOOD;
}

void packet_complete(struct packet *p, uint64_t now, uint64_t next)
{
	uint64_t late = p->sent - p->intended;
	int64_t ahead;

	if (!packet_is_short(p))
		return;
	p->sent = now + (uint64_t)((int64_t)((p->sent - now) << 16) >> 16);
	p->intended = p->sent - late;
	ahead = (int32_t)(uint32_t)(p->sequence - next);
	if (!(p->flags & PACKET_WARMUP) && (ahead >= 0 || (uint64_t)-ahead <= next))
		p->sequence = next + (uint64_t)ahead;
}

void packet_write(uint8_t *to, const struct packet *p)
{
	if (packet_is_short(p))
		write_short(to, p);
	else
		write_whole(to, p);
}

uint32_t packet_fill(uint8_t *datagram, uint32_t length, uint64_t sequence)
{
	uint8_t *at = datagram + (length < PACKET_HEADER ? PACKET_SHORT : PACKET_HEADER),
		*end = datagram + length;
	uint64_t word = sequence * 0x9e3779b97f4a7c15u, le;

	for (; end - at >= 8; at += 8) {
		le = htole64(word);
		memcpy(at, &le, sizeof(le));
		word = (word << 7 | word >> 57) + 0x632be59bd9b4e019u;
	}
	le = htole64(word);
	memcpy(at, &le, (size_t)(end - at));
	return length < PACKET_HEADER ? 0
				      : crc32c(datagram + PACKET_HEADER, length - PACKET_HEADER);
}

enum packet_verdict packet_read(const uint8_t *datagram, uint32_t length, bool check,
				struct packet *p)
{
	struct header h;

	if (length < PACKET_SHORT || length > PACKET_MAX)
		return PACKET_FOREIGN;
	if (length < sizeof(h))
		return read_short(datagram, length, p);
	memcpy(&h, datagram, sizeof(h));
	if (le32toh(h.magic) != PACKET_MAGIC)
		return PACKET_FOREIGN;
	if (le32toh(h.checksum) != crc32c(&h, offsetof(struct header, checksum)))
		return PACKET_CORRUPT;
	*p = (struct packet){
		.type = h.type,
		.flags = le16toh(h.flags),
		.stream = le32toh(h.stream),
		.flow = le16toh(h.flow),
		.length = le16toh(h.length),
		.sequence = le64toh(h.sequence),
		.intended = le64toh(h.intended),
		.sent = le64toh(h.sent),
		.turned = le64toh(h.turned),
		.payload_sum = le32toh(h.payload_sum),
	};
	if (h.version != PACKET_VERSION || p->type < PACKET_DATA || p->type > PACKET_END_REPLY ||
	    p->flow >= PACKET_FLOWS || p->stream == 0 ||
	    (p->flags & ~(PACKET_WARMUP | PACKET_SUMMED)))
		return PACKET_FOREIGN;
	if (p->length != length)
		return PACKET_CORRUPT;
	if (check && (!(p->flags & PACKET_SUMMED) ||
		      p->payload_sum != crc32c(datagram + PACKET_HEADER, length - PACKET_HEADER)))
		return PACKET_CORRUPT;
	return PACKET_GOOD;
}
