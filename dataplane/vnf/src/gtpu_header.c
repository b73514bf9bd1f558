/* SPDX-License-Identifier: Apache-2.0 */
/* UDP and GTP-U headers. */
#include "gtpu_header.h"

#include "checksum.h"
#include "gtpu.h"

/* Octet 1 (TS 29.281, figure 5.1-1). */
#define VERSION1 0x20u
#define VERSION 0xe0u
#define PROTOCOL_TYPE 0x10u /* GTP, and not GTP' */
#define HAS_EXTENSION 0x04u
#define HAS_SEQUENCE 0x02u
#define HAS_NPDU 0x01u
/* any of these flags adds all four octets */
#define HAS_OPTIONAL (HAS_EXTENSION | HAS_SEQUENCE | HAS_NPDU)

#define MANDATORY 8u
#define OPTIONAL 4u
#define EXTENSION_PDU_SESSION 0x85u
/* in an extension's type: the tunnel's end point must understand it (section 5.2.1) */
#define COMPREHENSION 0x80u
#define RECOVERY 14u /* information element, section 8.2 */

/*
 * RFC 768; RFC 1122, section 4.1.3.4: a checksum is verified if there is one. Beyond the snapshot
 * the sum is taken from the frame's own memory, which its sender may change before and after: that
 * only spoils the sender's own payload, since no decision depends on it.
 */
static enum reason check_udp_sum(const struct packet *p, const struct ip4 *outer, uint32_t udp,
				 uint32_t length)
{
	uint32_t in_head = p->have - udp < length ? p->have - udp : length;
	uint8_t pseudo[4] = {0, PROTOCOL_UDP};
	uint64_t sum;

	if (get16(p->head + udp + 6) == 0)
		return PASS;
	put16(pseudo + 2, length);
	sum = checksum_add(checksum_add(0, pseudo, sizeof(pseudo)), outer->at + 12, 8);
	sum = checksum_add(sum, p->head + udp, in_head);
	if (in_head < length)
		sum = checksum_add(sum, p->frame + udp + in_head, length - in_head);
	return checksum_fold(sum) == 0 ? PASS : DROP_CHECKSUM;
}

/* On return h->payload and h->end are those of the UDP payload. */
static enum reason read_udp(const struct packet *p, const struct ip4 *outer, struct gtpu_header *h)
{
	uint32_t at = outer->offset + outer->header, length;

	if (ip4_is_fragment(outer))
		return DROP_FRAGMENT;
	if (ip4_protocol(outer) != PROTOCOL_UDP)
		return DROP_PROTOCOL;
	if (outer->total < outer->header + UDP)
		return DROP_SHORT;
	if (p->have < at + UDP)
		return DROP_HEADERS;
	length = get16(p->head + at + 4);
	if (length < UDP || length > outer->total - outer->header)
		return DROP_LENGTH;
	if (get16(p->head + at + 2) != GTPU_PORT)
		return DROP_PROTOCOL;
	h->source_port = get16(p->head + at);
	h->payload = at + UDP;
	h->end = at + length;
	return check_udp_sum(p, outer, at, length);
}

/* Octets from h->payload on that must be in the datagram and in the snapshot. */
static enum reason need(const struct packet *p, const struct gtpu_header *h, uint32_t octets)
{
	if (h->end - h->payload < octets)
		return DROP_SHORT;
	return p->have < h->payload + octets ? DROP_HEADERS : PASS;
}

/*
 * TS 38.415, section 5.5.2: type in the upper half of the first octet, flow in the lower six bits
 * of the second.
 */
static enum reason read_pdu_session(const uint8_t *content, struct gtpu_header *h)
{
	if (h->has_pdu_session)
		return DROP_EXTENSION;
	h->has_pdu_session = true;
	h->pdu_type = content[0] >> 4;
	h->qfi = content[1] & 0x3f;
	return PASS;
}

/*
 * Section 5.2: length in units of four octets, content, type of the next. Each is at least four
 * octets long, so the walk ends.
 */
static enum reason read_extensions(const struct packet *p, uint8_t type, struct gtpu_header *h)
{
	enum reason reason;

	while (type) {
		const uint8_t *at = p->head + h->payload;
		uint32_t octets;

		reason = need(p, h, 4);
		if (reason)
			return reason;
		octets = at[0] * 4u;
		if (octets == 0 || octets > h->end - h->payload)
			return DROP_EXTENSION;
		reason = need(p, h, octets);
		if (!reason && type == EXTENSION_PDU_SESSION)
			reason = read_pdu_session(at + 1, h);
		else if (!reason && type & COMPREHENSION)
			reason = DROP_EXTENSION;
		if (reason)
			return reason;
		type = at[octets - 1];
		h->payload += octets;
	}
	return PASS;
}

static enum reason read_mandatory(const struct packet *p, struct gtpu_header *h, uint8_t *flags)
{
	const uint8_t *at = p->head + h->payload;
	enum reason reason = need(p, h, MANDATORY);
	uint32_t length;

	if (reason)
		return reason;
	*flags = at[0];
	if ((*flags & (VERSION | PROTOCOL_TYPE)) != (VERSION1 | PROTOCOL_TYPE))
		return DROP_GTP;
	h->message = at[1];
	length = get16(at + 2);
	h->teid = get32(at + 4);
	if (h->message != GTPU_G_PDU && h->message != GTPU_ECHO_REQUEST)
		return DROP_GTP_TYPE;
	h->payload += MANDATORY;
	if (length > h->end - h->payload)
		return DROP_LENGTH;
	h->end = h->payload + length;
	return PASS;
}

enum reason gtpu_read(const struct packet *p, const struct ip4 *outer, struct gtpu_header *h)
{
	enum reason reason;
	uint8_t flags, type;

	*h = (struct gtpu_header){0};
	reason = read_udp(p, outer, h);
	if (!reason)
		reason = read_mandatory(p, h, &flags);
	if (reason || !(flags & HAS_OPTIONAL))
		return reason;
	reason = need(p, h, OPTIONAL);
	if (reason)
		return reason;
	if (flags & HAS_SEQUENCE)
		h->sequence = get16(p->head + h->payload);
	type = flags & HAS_EXTENSION ? p->head[h->payload + 3] : 0;
	h->payload += OPTIONAL;
	return read_extensions(p, type, h);
}

/* No checksum: over IPv4, RFC 768 allows 0, and the inner packet has its own checksum. */
static void write_udp(uint8_t *to, uint32_t destination, uint32_t payload)
{
	put16(to, GTPU_PORT);
	put16(to + 2, destination);
	put16(to + 4, UDP + payload);
	put16(to + 6, 0);
}

void gtpu_write(uint8_t *to, uint32_t teid, bool plain, uint8_t pdu_type, uint8_t qfi,
		uint32_t bytes)
{
	uint8_t *gtp = to + UDP;

	write_udp(to, GTPU_PORT, gtpu_header_bytes(plain) + bytes);
	gtp[0] = (uint8_t)(VERSION1 | PROTOCOL_TYPE | (plain ? 0 : HAS_EXTENSION));
	gtp[1] = GTPU_G_PDU;
	put16(gtp + 2, gtpu_header_bytes(plain) - MANDATORY + bytes);
	put32(gtp + 4, teid);
	if (plain)
		return;
	put32(gtp + 8, EXTENSION_PDU_SESSION); /* no sequence number, no N-PDU number */
	gtp[12] = 1;
	gtp[13] = (uint8_t)(pdu_type << 4);
	gtp[14] = qfi;
	gtp[15] = 0;
}

/* Sections 7.2.2 and 8.2: the sequence number of the request, and a restart counter of 0. */
void gtpu_write_echo(uint8_t *to, const struct gtpu_header *request)
{
	uint8_t *gtp = to + UDP;

	write_udp(to, request->source_port, GTPU_ECHO);
	gtp[0] = VERSION1 | PROTOCOL_TYPE | HAS_SEQUENCE;
	gtp[1] = GTPU_ECHO_RESPONSE;
	put16(gtp + 2, GTPU_ECHO - MANDATORY);
	put32(gtp + 4, 0);
	put16(gtp + 8, request->sequence);
	put16(gtp + 10, 0);
	gtp[12] = RECOVERY;
	gtp[13] = 0;
}
