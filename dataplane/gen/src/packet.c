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
		/* the version and the length are added */
		[BEGIN] = PACKET_MAGIC | (uint64_t)p->type << 40 | (uint64_t)p->flags << 48,
		[STREAM] = p->stream | (uint64_t)p->flow << 32,
		[SEQUENCE] = p->sequence,
		[INTENDED] = p->intended,
		[SENT] = p->sent,
		[TURNED] = p->turned,
	}};
}

/* The version of a packet of that length: its flow and length share 32 bits. */
static inline uint8_t version_of(uint32_t length)
{
	return length > UINT16_MAX ? PACKET_VERSION_LONG : PACKET_VERSION;
}

/* Where the length is in its word. */
static inline unsigned length_shift(uint8_t version)
{
	return version == PACKET_VERSION_LONG ? 40 : 48;
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

/* A run in buffers of one length, as far as there are any. Returns how many. */
CRC32C_INLINE unsigned write_whole(struct words h, const struct io_buf *bufs, unsigned n,
				   bool summed, const struct frame_head *head, crc32c_step *step)
{
	const uint32_t length = bufs->length;
	unsigned i;

	h.w[BEGIN] |= (uint64_t)version_of(length) << 32;
	h.w[STREAM] |= (uint64_t)length << length_shift(version_of(length));
	for (i = 0; i < n && bufs[i].length == length; i++, h.w[SEQUENCE]++) {
		uint8_t *data = bufs[i].data;

		h.w[SUMS] = summed ? bufs[i].payload_sum : 0;
		h.w[SUMS] |= (uint64_t)whole_sum(&h, step) << 32;
		frame_put(head, data);
		for (unsigned k = 0; k < WORDS; k++)
			store64(data + 8 * k, h.w[k]);
	}
	return i;
}

static bool sensible(const struct packet *p)
{
	return p->type >= PACKET_DATA && p->type <= PACKET_END_REPLY && p->flow < PACKET_FLOWS &&
	       p->stream != 0 && !(p->flags & ~(PACKET_WARMUP | PACKET_SUMMED | PACKET_BULK));
}

/* What a whole header says. */
static inline struct packet packet_of(const struct words *h, uint8_t version)
{
	const unsigned shift = length_shift(version);

	return (struct packet){
		.type = (uint8_t)(h->w[BEGIN] >> 40),
		.flags = (uint16_t)(h->w[BEGIN] >> 48),
		.flow = (uint16_t)((h->w[STREAM] & ((1ull << shift) - 1)) >> 32),
		.length = (uint32_t)(h->w[STREAM] >> shift),
		.stream = (uint32_t)h->w[STREAM],
		.sequence = h->w[SEQUENCE],
		.intended = h->w[INTENDED],
		.sent = h->w[SENT],
		.turned = h->w[TURNED],
	};
}

CRC32C_INLINE enum packet_verdict read_whole(struct io_buf *buf, bool check, struct words *h,
					     struct packet *p, crc32c_step *step)
{
	uint8_t version;

	for (unsigned k = 0; k < WORDS; k++)
		h->w[k] = load64(buf->data + 8 * k);
	if ((uint32_t)h->w[BEGIN] != PACKET_MAGIC)
		return PACKET_FOREIGN;
	if (h->w[SUMS] >> 32 != whole_sum(h, step))
		return PACKET_CORRUPT;
	version = (uint8_t)(h->w[BEGIN] >> 32);
	*p = packet_of(h, version);
	buf->payload_sum = (uint32_t)h->w[SUMS];
	if (version != version_of(p->length) || !sensible(p))
		return PACKET_FOREIGN;
	if (p->length != buf->length)
		return PACKET_CORRUPT;
	if (check && (!(p->flags & PACKET_SUMMED) || buf->payload_sum != padding_sum(buf, step)))
		return PACKET_CORRUPT;
	return PACKET_GOOD;
}

/* Whether two received datagrams have one length, in frames alike. */
static inline bool same_shape(const struct io_buf *a, const struct io_buf *b)
{
	return a->length == b->length && a->headers == b->headers;
}

/* How many of n datagrams continue the run that the first one begins. */
CRC32C_INLINE unsigned follow_whole(const struct words *first, struct io_buf *bufs, unsigned n,
				    bool check, crc32c_step *step)
{
	struct words h;
	unsigned i;

	for (i = 1; i < n && same_shape(&bufs[i], bufs); i++) {
		uint64_t differences;

		for (unsigned k = 0; k < WORDS; k++)
			h.w[k] = load64(bufs[i].data + 8 * k);
		differences = h.w[SEQUENCE] ^ (first->w[SEQUENCE] + i);
		for (unsigned k = 0; k < SUMS; k++)
			differences |= k == SEQUENCE ? 0 : h.w[k] ^ first->w[k];
		bufs[i].payload_sum = (uint32_t)h.w[SUMS];
		if (differences || h.w[SUMS] >> 32 != whole_sum(&h, step) ||
		    (check && bufs[i].payload_sum != padding_sum(&bufs[i], step)))
			break;
	}
	return i;
}

/*
 * The short header: two words, and its sum, which does not cover itself. The first word has the
 * sequence number in its upper half.
 */
enum { SHORT_BEGIN, SHORT_SENT, SHORT_WORDS };

#define SUM (SHORT_WORDS * 8u) /* offset */

/* Bytes in a frame of 64 over IPv4, whose rate matters most: there is code with this constant. */
#define LEAST (64 - FRAME_HEADERS)

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

/* The state after a short header that so many zeros follow. */
CRC32C_INLINE uint32_t short_begin(const struct words *h, uint32_t zeros, crc32c_step *step)
{
	uint32_t c = step(CRC32C_BEGIN, h->w[SHORT_BEGIN], 8);

	return crc32c_zeros(step(c, h->w[SHORT_SENT], 8), sizeof(uint16_t) + zeros, step);
}

/* Of the state, not of its complement: the complements of both halves make the same. */
static inline uint16_t short_end(uint32_t c)
{
	return (uint16_t)(c >> 16 ^ c);
}

/* Of the header, and of the bytes after it. */
CRC32C_INLINE uint16_t short_sum(const struct words *h, const struct io_buf *buf, crc32c_step *step)
{
	return short_end(crc32c_over(short_begin(h, 0, step), buf->data + PACKET_SHORT,
				     buf->length - PACKET_SHORT, step));
}

/*
 * Clear what comes after a short header, which is written next: its first bytes are cleared as
 * well. To read what a buffer has there is to wait for its cache line to come from the other core.
 * Stores do not wait.
 */
static inline void clear_rest(uint8_t *data, uint32_t length)
{
	const frame_block zeros = {0};

	for (uint32_t i = PACKET_SHORT; i + FRAME_BLOCK < length; i += FRAME_BLOCK)
		memcpy(data + i, &zeros, FRAME_BLOCK);
	memcpy(data + length - FRAME_BLOCK, &zeros, FRAME_BLOCK);
}

/* As write_whole, in buffers of this length. */
CRC32C_INLINE unsigned write_short(struct words h, const struct io_buf *bufs, unsigned n,
				   uint32_t length, bool filled, const struct frame_head *head,
				   crc32c_step *step)
{
	const uint32_t rest = length - PACKET_SHORT;
	unsigned i;

	for (i = 0; i < n && bufs[i].length == length; i++, h.w[SHORT_BEGIN] += 1ull << 32) {
		uint8_t *data = bufs[i].data;
		uint16_t sum;
		uint32_t c;

		if (filled) {
			c = crc32c_over(short_begin(&h, 0, step), data + PACKET_SHORT, rest, step);
		} else {
			c = short_begin(&h, rest, step);
			clear_rest(data, length);
		}
		sum = htole16(short_end(c));
		frame_put(head, data);
		store64(data, h.w[SHORT_BEGIN]);
		store64(data + 8, h.w[SHORT_SENT]);
		memcpy(data + SUM, &sum, sizeof(sum));
	}
	return i;
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
		.length = buf->length,
		.stream = (uint8_t)(begin >> 16),
		.sequence = begin >> 32,
		.intended = sent - late_read((uint16_t)(h->w[SHORT_SENT] >> 48)),
		.sent = sent,
	};
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
			     const struct frame_flow *flow, crc32c_step *step)
{
	struct words whole = whole_words(p), brief = short_words(p);
	const bool summed = p->flags & PACKET_SUMMED, filled = summed || p->type != PACKET_DATA;

	for (unsigned i = 0, some; i < n; bufs += some, i += some) {
		const struct frame_head head = frame_head(flow, bufs->length, i);
		const unsigned alike = flow && flow->varies ? 1 : n - i;

		if (bufs->length >= PACKET_HEADER)
			some = write_whole(whole, bufs, alike, summed, &head, step);
		else if (filled)
			some = write_short(brief, bufs, alike, bufs->length, true, &head, step);
		else if (bufs->length == LEAST)
			some = write_short(brief, bufs, alike, LEAST, false, &head, step);
		else
			some = write_short(brief, bufs, alike, bufs->length, false, &head, step);
		whole.w[SEQUENCE] += some;
		brief.w[SHORT_BEGIN] += (uint64_t)some << 32;
	}
}

CRC32C_INLINE enum packet_verdict read_one(struct io_buf *buf, bool check, struct words *h,
					   struct packet *p, crc32c_step *step)
{
	if (buf->length < PACKET_SHORT || buf->length > PACKET_LONGEST)
		return PACKET_FOREIGN;
	return buf->length < PACKET_HEADER ? read_short(buf, h, p, step)
					   : read_whole(buf, check, h, p, step);
}

/* The same of short ones. The checksum is that of the header which is expected. */
CRC32C_INLINE unsigned follow_short(const struct words *first, const struct io_buf *bufs,
				    unsigned n, uint32_t length, crc32c_step *step)
{
	const uint32_t rest = length - PACKET_SHORT;
	struct words want = *first;
	unsigned i;

	for (i = 1; i < n && same_shape(&bufs[i], bufs); i++) {
		const uint8_t *data = bufs[i].data;
		uint16_t sum;

		want.w[SHORT_BEGIN] += 1ull << 32;
		memcpy(&sum, data + SUM, sizeof(sum));
		if (load64(data) != want.w[SHORT_BEGIN] || load64(data + 8) != want.w[SHORT_SENT] ||
		    le16toh(sum) != short_end(crc32c_over(short_begin(&want, 0, step),
							  data + PACKET_SHORT, rest, step)))
			break;
	}
	return i;
}

CRC32C_INLINE unsigned read_run(struct io_buf *bufs, unsigned n, bool check, struct packet *p,
				enum packet_verdict *verdict, crc32c_step *step)
{
	struct words first;

	*verdict = read_one(bufs, check, &first, p, step);
	/* Each end packet says how many were sent. */
	if (*verdict != PACKET_GOOD || p->type == PACKET_END || p->type == PACKET_END_REPLY)
		return 1;
	if (bufs->length == LEAST)
		return follow_short(&first, bufs, n, LEAST, step);
	return bufs->length < PACKET_HEADER ? follow_short(&first, bufs, n, bufs->length, step)
					    : follow_whole(&first, bufs, n, check, step);
}

CRC32C_TARGET static void write_by_instruction(const struct packet *p, const struct io_buf *bufs,
					       unsigned n, const struct frame_flow *flow)
{
	write_run(p, bufs, n, flow, crc32c_step_instruction);
}

CRC32C_TARGET static unsigned read_by_instruction(struct io_buf *bufs, unsigned n, bool check,
						  struct packet *p, enum packet_verdict *verdict)
{
	return read_run(bufs, n, check, p, verdict, crc32c_step_instruction);
}

void packet_write_frames(const struct packet *first, const struct io_buf *bufs, unsigned n,
			 const struct frame_flow *flow)
{
	if (crc32c_has_instruction())
		write_by_instruction(first, bufs, n, flow);
	else
		write_run(first, bufs, n, flow, crc32c_step_portable);
}

void packet_write(const struct packet *first, const struct io_buf *bufs, unsigned n)
{
	packet_write_frames(first, bufs, n, NULL);
}

unsigned packet_read(struct io_buf *bufs, unsigned n, bool check, struct packet *first,
		     enum packet_verdict *verdict)
{
	return crc32c_has_instruction()
		       ? read_by_instruction(bufs, n, check, first, verdict)
		       : read_run(bufs, n, check, first, verdict, crc32c_step_portable);
}
