/* SPDX-License-Identifier: Apache-2.0 */
/* Writing and reading draygen's packets. */
#include "packet.h"

#include <assert.h>
#include <endian.h>
#include <string.h>

#include "crc32c.h"

/*
 * A header as little-endian words: seven of a whole one, two of a short one, and its checksum
 * apart.
 */
struct words {
	uint64_t w[7];
};

/* What they hold, from the lowest bits on. */
enum { BEGIN, STREAM, SEQUENCE, INTENDED, SENT, TURNED, SUMS, WORDS };

static_assert(WORDS * 8 == PACKET_HEADER, "as in README.md");

static inline uint64_t load64(const uint8_t *from)
{
	uint64_t word;

	memcpy(&word, from, sizeof(word));
	return le64toh(word);
}

static inline void store64(uint8_t *to, uint64_t word)
{
	word = htole64(word);
	memcpy(to, &word, sizeof(word));
}

static struct words whole_words(const struct packet *p)
{
	return (struct words){{
		[BEGIN] = PACKET_MAGIC | (uint64_t)PACKET_VERSION << 32 | (uint64_t)p->type << 40 |
			  (uint64_t)p->flags << 48,
		[STREAM] = p->stream | (uint64_t)p->flow << 32, /* the length is added */
		[SEQUENCE] = p->sequence,
		[INTENDED] = p->intended,
		[SENT] = p->sent,
		[TURNED] = p->turned,
	}};
}

CRC32C_INLINE uint32_t whole_sum(const struct words *h, crc32c_step *step)
{
	uint32_t c = CRC32C_BEGIN;

	for (unsigned i = 0; i < SUMS; i++)
		c = step(c, h->w[i], 8);
	return ~step(c, h->w[SUMS], 4);
}

CRC32C_INLINE uint32_t padding_sum(const struct io_buf *buf, crc32c_step *step)
{
	return ~crc32c_over(CRC32C_BEGIN, buf->data + PACKET_HEADER, buf->length - PACKET_HEADER,
			    step);
}

/* Packet i of a run. */
CRC32C_INLINE void write_whole(const struct words *first, unsigned i, const struct io_buf *buf,
			       bool summed, crc32c_step *step)
{
	struct words h = *first;

	h.w[STREAM] |= (uint64_t)buf->length << 48;
	h.w[SEQUENCE] += i;
	h.w[SUMS] = summed ? buf->payload_sum : 0;
	h.w[SUMS] |= (uint64_t)whole_sum(&h, step) << 32;
	for (unsigned k = 0; k < WORDS; k++)
		store64(buf->data + 8 * k, h.w[k]);
}

static bool sensible(const struct packet *p)
{
	return p->type >= PACKET_DATA && p->type <= PACKET_END_REPLY && p->flow < PACKET_FLOWS &&
	       p->stream != 0 && !(p->flags & ~(PACKET_WARMUP | PACKET_SUMMED));
}

CRC32C_INLINE enum packet_verdict read_whole(struct io_buf *buf, bool check, struct words *h,
					     struct packet *p, crc32c_step *step)
{
	for (unsigned k = 0; k < WORDS; k++)
		h->w[k] = load64(buf->data + 8 * k);
	if ((uint32_t)h->w[BEGIN] != PACKET_MAGIC)
		return PACKET_FOREIGN;
	if (h->w[SUMS] >> 32 != whole_sum(h, step))
		return PACKET_CORRUPT;
	*p = (struct packet){
		.type = (uint8_t)(h->w[BEGIN] >> 40),
		.flags = (uint16_t)(h->w[BEGIN] >> 48),
		.flow = (uint16_t)(h->w[STREAM] >> 32),
		.length = (uint16_t)(h->w[STREAM] >> 48),
		.stream = (uint32_t)h->w[STREAM],
		.sequence = h->w[SEQUENCE],
		.intended = h->w[INTENDED],
		.sent = h->w[SENT],
		.turned = h->w[TURNED],
	};
	buf->payload_sum = (uint32_t)h->w[SUMS];
	if ((uint8_t)(h->w[BEGIN] >> 32) != PACKET_VERSION || !sensible(p))
		return PACKET_FOREIGN;
	if (p->length != buf->length)
		return PACKET_CORRUPT;
	if (check && (!(p->flags & PACKET_SUMMED) || buf->payload_sum != padding_sum(buf, step)))
		return PACKET_CORRUPT;
	return PACKET_GOOD;
}

/* Whether a datagram of the first one's length is packet i of its run. */
CRC32C_INLINE bool continues_whole(const struct words *first, unsigned i, struct io_buf *buf,
				   bool check, crc32c_step *step)
{
	struct words h;
	uint64_t differences;

	for (unsigned k = 0; k < WORDS; k++)
		h.w[k] = load64(buf->data + 8 * k);
	differences = h.w[SEQUENCE] ^ (first->w[SEQUENCE] + i);
	for (unsigned k = 0; k < SUMS; k++)
		differences |= k == SEQUENCE ? 0 : h.w[k] ^ first->w[k];
	buf->payload_sum = (uint32_t)h.w[SUMS];
	return differences == 0 && h.w[SUMS] >> 32 == whole_sum(&h, step) &&
	       (!check || buf->payload_sum == padding_sum(buf, step));
}

/*
 * The short header: two words, and its sum, which does not cover itself. The first word has the
 * sequence number in its upper half.
 */
enum { SHORT_BEGIN, SHORT_SENT, SHORT_WORDS };

#define SUM (SHORT_WORDS * 8u) /* offset */

#define SHORT_MAGIC 0xdcu
#define KIND_VERSION 0x20u /* 1; the type is added */
#define KIND_WARMUP 0x10u
#define KIND_REPLY (PACKET_DATA ^ PACKET_REPLY)
#define SENT_MASK ((1ull << 48) - 1)

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

static struct words short_words(const struct packet *p)
{
	uint64_t kind = KIND_VERSION | p->type | (p->flags & PACKET_WARMUP ? KIND_WARMUP : 0),
		 late = late_write(p->sent - p->intended);

	return (struct words){{
		[SHORT_BEGIN] = SHORT_MAGIC | kind << 8 | (uint64_t)(uint8_t)p->stream << 16 |
				(uint64_t)(uint8_t)p->flow << 24 | p->sequence << 32,
		[SHORT_SENT] = (p->sent & SENT_MASK) | late << 48,
	}};
}

/* Of the header, and of the bytes after it. */
CRC32C_INLINE uint16_t short_sum(const struct words *h, const struct io_buf *buf, crc32c_step *step)
{
	uint32_t c = CRC32C_BEGIN;

	c = step(c, h->w[SHORT_BEGIN], 8);
	c = step(c, h->w[SHORT_SENT], 8);
	c = step(c, 0, 2);
	c = ~crc32c_over(c, buf->data + PACKET_SHORT, buf->length - PACKET_SHORT, step);
	return (uint16_t)(c >> 16 ^ c);
}

/* Packet i of a run. */
CRC32C_INLINE void write_short(const struct words *first, unsigned i, const struct io_buf *buf,
			       crc32c_step *step)
{
	struct words h = *first;
	uint16_t sum;

	h.w[SHORT_BEGIN] += (uint64_t)i << 32;
	sum = htole16(short_sum(&h, buf, step));
	store64(buf->data, h.w[SHORT_BEGIN]);
	store64(buf->data + 8, h.w[SHORT_SENT]);
	memcpy(buf->data + SUM, &sum, sizeof(sum));
}

/* Its words, each read once, and whether its sum is right. */
CRC32C_INLINE bool load_short(const struct io_buf *buf, struct words *h, crc32c_step *step)
{
	uint16_t sum;

	h->w[SHORT_BEGIN] = load64(buf->data);
	h->w[SHORT_SENT] = load64(buf->data + 8);
	memcpy(&sum, buf->data + SUM, sizeof(sum));
	return le16toh(sum) == short_sum(h, buf, step);
}

CRC32C_INLINE enum packet_verdict read_short(const struct io_buf *buf, struct words *h,
					     struct packet *p, crc32c_step *step)
{
	bool good = load_short(buf, h, step);
	uint64_t begin = h->w[SHORT_BEGIN], sent = h->w[SHORT_SENT] & SENT_MASK;
	uint8_t kind = (uint8_t)(begin >> 8);

	if ((uint8_t)begin != SHORT_MAGIC ||
	    (kind & ~(KIND_WARMUP | KIND_REPLY)) != (KIND_VERSION | PACKET_DATA))
		return PACKET_FOREIGN;
	if (!good)
		return PACKET_CORRUPT;
	*p = (struct packet){
		.type = kind & PACKET_REPLY,
		.flags = kind & KIND_WARMUP ? PACKET_WARMUP : 0,
		.flow = (uint8_t)(begin >> 24),
		.length = (uint16_t)buf->length,
		.stream = (uint8_t)(begin >> 16),
		.sequence = begin >> 32,
		.intended = sent - late_read((uint16_t)(h->w[SHORT_SENT] >> 48)),
		.sent = sent,
	};
	return PACKET_GOOD;
}

/* As continues_whole. */
CRC32C_INLINE bool continues_short(const struct words *first, unsigned i, const struct io_buf *buf,
				   crc32c_step *step)
{
	struct words h;

	return load_short(buf, &h, step) &&
	       h.w[SHORT_BEGIN] == first->w[SHORT_BEGIN] + ((uint64_t)i << 32) &&
	       h.w[SHORT_SENT] == first->w[SHORT_SENT];
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

uint32_t packet_fill(uint8_t *datagram, uint32_t length, uint64_t sequence)
{
	uint8_t *at = datagram + (length < PACKET_HEADER ? PACKET_SHORT : PACKET_HEADER),
		*end = datagram + length;
	uint64_t word = sequence * 0x9e3779b97f4a7c15u, le;

	for (; end - at >= 8; at += 8) {
		store64(at, word);
		word = (word << 7 | word >> 57) + 0x632be59bd9b4e019u;
	}
	le = htole64(word);
	memcpy(at, &le, (size_t)(end - at));
	return length < PACKET_HEADER ? 0
				      : crc32c(datagram + PACKET_HEADER, length - PACKET_HEADER);
}

CRC32C_INLINE void write_run(const struct packet *p, const struct io_buf *bufs, unsigned n,
			     crc32c_step *step)
{
	const struct words whole = whole_words(p), brief = short_words(p);
	const bool summed = p->flags & PACKET_SUMMED;

	for (unsigned i = 0; i < n; i++) {
		if (bufs[i].length < PACKET_HEADER)
			write_short(&brief, i, &bufs[i], step);
		else
			write_whole(&whole, i, &bufs[i], summed, step);
	}
}

CRC32C_INLINE enum packet_verdict read_one(struct io_buf *buf, bool check, struct words *h,
					   struct packet *p, crc32c_step *step)
{
	if (buf->length < PACKET_SHORT || buf->length > PACKET_MAX)
		return PACKET_FOREIGN;
	return buf->length < PACKET_HEADER ? read_short(buf, h, p, step)
					   : read_whole(buf, check, h, p, step);
}

/* Whether datagram i belongs to the run that the first one begins. */
CRC32C_INLINE bool continues(const struct words *first, unsigned i, struct io_buf *bufs, bool check,
			     crc32c_step *step)
{
	struct io_buf *buf = &bufs[i];

	if (buf->length != bufs->length || buf->headers != bufs->headers)
		return false;
	return buf->length < PACKET_HEADER ? continues_short(first, i, buf, step)
					   : continues_whole(first, i, buf, check, step);
}

CRC32C_INLINE unsigned read_run(struct io_buf *bufs, unsigned n, bool check, struct packet *p,
				enum packet_verdict *verdict, crc32c_step *step)
{
	struct words first;
	unsigned i = 1;

	*verdict = read_one(bufs, check, &first, p, step);
	/* Each end packet says how many were sent. */
	if (*verdict != PACKET_GOOD || p->type == PACKET_END || p->type == PACKET_END_REPLY)
		return 1;
	while (i < n && continues(&first, i, bufs, check, step))
		i++;
	return i;
}

CRC32C_TARGET static void write_by_instruction(const struct packet *p, const struct io_buf *bufs,
					       unsigned n)
{
	write_run(p, bufs, n, crc32c_step_instruction);
}

CRC32C_TARGET static unsigned read_by_instruction(struct io_buf *bufs, unsigned n, bool check,
						  struct packet *p, enum packet_verdict *verdict)
{
	return read_run(bufs, n, check, p, verdict, crc32c_step_instruction);
}

void packet_write(const struct packet *first, const struct io_buf *bufs, unsigned n)
{
	if (crc32c_has_instruction())
		write_by_instruction(first, bufs, n);
	else
		write_run(first, bufs, n, crc32c_step_portable);
}

unsigned packet_read(struct io_buf *bufs, unsigned n, bool check, struct packet *first,
		     enum packet_verdict *verdict)
{
	return crc32c_has_instruction()
		       ? read_by_instruction(bufs, n, check, first, verdict)
		       : read_run(bufs, n, check, first, verdict, crc32c_step_portable);
}
