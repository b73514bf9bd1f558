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
static_assert(offsetof(struct header, sequence) == 16 && offsetof(struct header, turned) == 40, "as in README.md");
static_assert(offsetof(struct header, payload_sum) == 48 && offsetof(struct header, checksum) == 52, "as in README.md");

void packet_write(uint8_t *to, const struct packet *p)
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

uint32_t packet_fill(uint8_t *datagram, uint32_t length, uint64_t sequence)
{
	uint8_t *at = datagram + PACKET_HEADER, *end = datagram + length;
	uint64_t word = sequence * 0x9e3779b97f4a7c15u, le;

	for (; end - at >= 8; at += 8) {
		le = htole64(word);
		memcpy(at, &le, sizeof(le));
		word = (word << 7 | word >> 57) + 0x632be59bd9b4e019u;
	}
	le = htole64(word);
	memcpy(at, &le, (size_t)(end - at));
	return crc32c(datagram + PACKET_HEADER, length - PACKET_HEADER);
}

enum packet_verdict packet_read(const uint8_t *datagram, uint32_t length, bool check, struct packet *p)
{
	struct header h;

	if (length < sizeof(h) || length > PACKET_MAX)
		return PACKET_FOREIGN;
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
	if (h.version != PACKET_VERSION || p->type < PACKET_DATA || p->type > PACKET_END_REPLY || p->flow >= PACKET_FLOWS || p->stream == 0 ||
	    (p->flags & ~(PACKET_WARMUP | PACKET_SUMMED)))
		return PACKET_FOREIGN;
	if (p->length != length)
		return PACKET_CORRUPT;
	if (check && (!(p->flags & PACKET_SUMMED) || p->payload_sum != crc32c(datagram + PACKET_HEADER, length - PACKET_HEADER)))
		return PACKET_CORRUPT;
	return PACKET_GOOD;
}
