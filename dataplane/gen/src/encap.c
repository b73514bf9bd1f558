/* SPDX-License-Identifier: Apache-2.0 */
/* Encapsulations: read from the command line, written, read, turned. */
#include "encap.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "frame.h"
#include "ip.h"
#include "units.h"

#define TAGGED (ETHERNET + 2 * TAG)
#define LABELLED (ETHERNET + TAG)
#define GRE_KEYED 8u	    /* bytes: flags, protocol, key (RFC 2890) */
#define GRE_HAS_KEY 0x2000u /* and nothing else: no checksum, no sequence number, version 0 */
#define GTP 8u		    /* bytes that each has (TS 29.281, 5.1) */
/*
 * bytes more: the fields before extension headers, and the PDU session container
 * (TS 38.415, 5.5.2)
 */
#define CONTAINER 8u
#define NRU_CONTAINER 12u /* the same with an NR RAN container (TS 38.425, 5.5.2.1) */
#define PDCP 3u		  /* bytes: a data PDU with a number of 18 bits (TS 38.323, 6.2.2.3) */
#define PDCP_DATA 0x80u
#define PDCP_NUMBER 0x3ffffu
#define NRU_NUMBER 0xffffffu
#define NUMBERS 4u	   /* bytes more of a sequence number or an N-PDU number */
#define GTP_FLAGS 0x30u	   /* version 1, GTP and not GTP' */
#define GTP_EXTENDED 0x34u /* and extension headers */
#define GTP_NUMBERED 0x03u /* and one of the numbers, or both */
#define GTP_PACKET 0xffu   /* message type of a G-PDU, which carries a packet */
#define GTP_PDU_SESSION 0x85u
#define GTP_NR_RAN 0x84u
#define NRU_TYPE 0xf0u /* of the PDU; 0: DL USER DATA */
#define PDU_UPLINK 0x10u
#define PDU_TYPE 0xf0u
#define QFI 0x3fu
#define BOTTOM_OF_STACK 0x100u
#define LABEL_HOPS 255u
#define VLAN_MAX 4094u
#define TUNNELS_MAX 1000000u

static_assert(ENCAP_QINQ_HEADERS == TAGGED + IP4 + UDP &&
		      ENCAP_GRE_MPLS_HEADERS == LABELLED + IP4 + GRE_KEYED + IP4 + UDP,
	      "as encap.h says");
static_assert(ENCAP_GTPU_HEADERS == FRAME_HEADERS + GTP + IP4 + UDP &&
		      ENCAP_PDU_HEADERS == ENCAP_GTPU_HEADERS + CONTAINER,
	      "as encap.h says");
static_assert(ENCAP_NRU_HEADERS == ENCAP_GTPU_HEADERS + NRU_CONTAINER + PDCP, "as encap.h says");
static_assert(ENCAP_GTPU_NUMBERED_HEADERS == ENCAP_GTPU_HEADERS + NUMBERS, "as encap.h says");

uint32_t encap_headers(const struct encap *e)
{
	switch (e->kind) {
	case ENCAP_QINQ:
		return ENCAP_QINQ_HEADERS;
	case ENCAP_GRE_MPLS:
		return ENCAP_GRE_MPLS_HEADERS;
	case ENCAP_GTPU:
		if (e->nru)
			return ENCAP_NRU_HEADERS;
		return e->container ? ENCAP_PDU_HEADERS : ENCAP_GTPU_HEADERS;
	default:
		return FRAME_HEADERS;
	}
}

/* Fields of the option, by their index in its list. */
enum field { F_S, F_C, F_LABEL, F_KEY, F_TEID, F_FROM, F_TO, F_PDU, F_QFI, F_TUNNELS, F_NRU };

static bool read_number(const char *text, uint64_t low, uint64_t high, uint32_t *value)
{
	uint64_t wide;

	if (!units_number(text, &wide) || wide < low || wide > high)
		return false;
	*value = (uint32_t)wide;
	return true;
}

static bool read_ip(const char *text, uint32_t *ip)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1)
		return false;
	*ip = ntohl(in.s_addr);
	return true;
}

static bool read_pdu(const char *text, struct encap *e)
{
	e->container = true;
	e->downlink = strcmp(text, "down") == 0;
	return e->downlink || strcmp(text, "up") == 0;
}

static bool read_field(int field, const char *value, struct encap *e)
{
	uint32_t qfi = 0;

	switch (field) {
	case F_S:
		return read_number(value, 1, VLAN_MAX, &e->tag);
	case F_C:
		return read_number(value, 1, VLAN_MAX, &e->user);
	case F_LABEL:
		return read_number(value, 0, 0xfffff, &e->tag);
	case F_KEY:
	case F_TEID:
		return read_number(value, 0, UINT32_MAX, &e->user);
	case F_FROM:
		return read_ip(value, &e->from);
	case F_TO:
		return read_ip(value, &e->to);
	case F_PDU:
		return read_pdu(value, e);
	case F_TUNNELS:
		return read_number(value, 1, TUNNELS_MAX, &e->tunnels);
	case F_NRU:
		e->nru = true;
		return strcmp(value, "dl") == 0;
	default:
		if (!read_number(value, 0, QFI, &qfi))
			return false;
		e->qfi = (uint8_t)qfi;
		return true;
	}
}

#define MASK(field) (1u << (field))

/* Name, required fields and optional fields of each kind. */
static const struct {
	const char *name;
	enum encap_kind kind;
	unsigned must, may;
} kinds[] = {
	{"qinq:", ENCAP_QINQ, MASK(F_S) | MASK(F_C), 0},
	{"gre-mpls:", ENCAP_GRE_MPLS, MASK(F_LABEL) | MASK(F_KEY) | MASK(F_FROM) | MASK(F_TO), 0},
	{"gtpu:", ENCAP_GTPU, MASK(F_TEID) | MASK(F_FROM) | MASK(F_TO),
	 MASK(F_PDU) | MASK(F_QFI) | MASK(F_TUNNELS) | MASK(F_NRU)},
};

static const char *read_fields(char *fields, unsigned must, unsigned may, struct encap *e)
{
	char *const names[] = {"s",  "c",   "label", "key",	"teid", "from",
			       "to", "pdu", "qfi",   "tunnels", "nru",	NULL};
	unsigned seen = 0;
	char *value;

	while (*fields) {
		int field = getsubopt(&fields, names, &value);

		if (field < 0 || !((must | may) & MASK(field)))
			return "has a field that it does not know";
		if (seen & MASK(field))
			return "has a field twice";
		if (!value || !read_field(field, value, e))
			return "has an impossible value";
		seen |= MASK(field);
	}
	if ((seen & must) != must)
		return "lacks a field";
	if (seen & MASK(F_NRU) && seen & MASK(F_PDU))
		return "has pdu and nru: a packet is on N3 or on F1-U";
	if (seen & MASK(F_NRU) && !(seen & MASK(F_TUNNELS)))
		return "has nru without tunnels: numbers count the packets of a tunnel";
	/* A container needs a flow, and a flow needs a container. */
	return !(seen & MASK(F_PDU)) == !(seen & MASK(F_QFI)) ? NULL
							      : "has only one of pdu and qfi";
}

const char *encap_read(const char *text, struct encap *e)
{
	enum encap_spread spread = e->spread;
	char fields[160];

	for (unsigned i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t name = strlen(kinds[i].name);

		if (strncmp(text, kinds[i].name, name) != 0)
			continue;
		if (strlen(text + name) >= sizeof(fields))
			return "is too long";
		strcpy(fields, text + name);
		*e = (struct encap){.kind = kinds[i].kind, .spread = spread};
		return read_fields(fields, kinds[i].must, kinds[i].may, e);
	}
	return "is none of qinq:s=N,c=N, gre-mpls:label=N,key=N,from=IP,to=IP and "
	       "gtpu:teid=N,from=IP,to=IP[,tunnels=N][,pdu=up|down,qfi=N | ,nru=dl]";
}

const char *encap_check_flows(const struct encap *e, uint32_t flows)
{
	uint32_t last = e->kind == ENCAP_QINQ ? VLAN_MAX : UINT32_MAX,
		 users = e->tunnels ? e->tunnels : flows;

	return e->kind == ENCAP_NONE || e->user <= last - (users - 1)
		       ? NULL
		       : "has too few numbers left: each flow or tunnel has the next";
}

/* The packet of a user, who is counted from the first. */
static void write_inner(uint8_t *ip, const struct frame_address *a, uint32_t user,
			uint16_t from_port, uint32_t payload)
{
	uint8_t from[4], to[4];

	put32(from, get32(a->from_ip) + (a->encap->spread == ENCAP_SPREAD_FROM ? user : 0));
	put32(to, get32(a->to_ip) + (a->encap->spread == ENCAP_SPREAD_TO ? user : 0));
	ip4_write(ip, dscp_octet(a->dscp), from, to, PROTOCOL_UDP, UDP + payload);
	udp_write(ip + IP4, from_port, a->to_port, payload);
}

/* The outer header has the DSCP of the inner one, as in RFC 2983's uniform model. */
static void write_outer(uint8_t *ip, const struct frame_address *a, uint32_t protocol,
			uint32_t payload)
{
	uint8_t from[4], to[4];

	put32(from, a->encap->from);
	put32(to, a->encap->to);
	ip4_write(ip, dscp_octet(a->dscp), from, to, protocol, payload);
}

static void write_tags(uint8_t *frame, const struct encap *e, uint32_t user)
{
	put16(frame + 12, TYPE_SVLAN);
	put16(frame + ETHERNET, e->tag);
	put16(frame + ETHERNET + 2, TYPE_VLAN);
	put16(frame + ETHERNET + TAG, user);
	put16(frame + TAGGED - 2, TYPE_IP4);
}

static void write_label(uint8_t *frame, const struct frame_address *a, uint32_t user,
			uint32_t inner)
{
	uint8_t *gre = frame + LABELLED + IP4;

	put16(frame + 12, TYPE_MPLS);
	put32(frame + ETHERNET, a->encap->tag << 12 | BOTTOM_OF_STACK | LABEL_HOPS);
	write_outer(frame + LABELLED, a, PROTOCOL_GRE, GRE_KEYED + inner);
	put16(gre, GRE_HAS_KEY);
	put16(gre + 2, TYPE_IP4);
	put32(gre + 4, user);
}

static void write_container(uint8_t *gtp, const struct encap *e)
{
	put32(gtp + GTP, GTP_PDU_SESSION); /* no sequence number, no N-PDU number */
	gtp[12] = 1;			   /* unit of four bytes */
	gtp[13] = e->downlink ? 0 : PDU_UPLINK;
	gtp[14] = e->qfi;
	gtp[15] = 0; /* no extension header follows */
}

/* The container of downlink data, whose flags ask for nothing, and the header of its PDCP PDU. */
static void write_nru(uint8_t *gtp, uint32_t number)
{
	put32(gtp + GTP, GTP_NR_RAN);
	gtp[12] = 2; /* units */
	put16(gtp + 13, 0);
	gtp[15] = (uint8_t)(number >> 16);
	put16(gtp + 16, number & 0xffff);
	put16(gtp + 18, 0); /* padding; no extension header follows */
	gtp[20] = (uint8_t)(PDCP_DATA | (number & PDCP_NUMBER) >> 16);
	put16(gtp + 21, number & 0xffff);
}

/*
 * The outer datagram has no checksum (RFC 768): the inner packet has its own. The number counts the
 * packets of a tunnel.
 */
static void write_gtpu(uint8_t *frame, const struct frame_address *a, uint32_t user, uint32_t inner,
		       uint32_t number)
{
	const struct encap *e = a->encap;
	uint32_t more = encap_headers(e) - ENCAP_GTPU_HEADERS;
	uint8_t *gtp = frame + FRAME_HEADERS;

	put16(frame + 12, TYPE_IP4);
	write_outer(frame + ETHERNET, a, PROTOCOL_UDP, UDP + GTP + more + inner);
	udp_write(frame + ETHERNET + IP4, ENCAP_GTPU_PORT, ENCAP_GTPU_PORT, GTP + more + inner);
	gtp[0] = more ? GTP_EXTENDED : GTP_FLAGS;
	gtp[1] = GTP_PACKET;
	put16(gtp + 2, more + inner);
	put32(gtp + 4, user);
	if (e->nru)
		write_nru(gtp, number);
	else if (e->container)
		write_container(gtp, e);
}

void encap_write(uint8_t *frame, const struct frame_address *a, uint16_t from_port,
		 uint32_t payload, uint64_t number)
{
	const struct encap *e = a->encap;
	uint32_t user =
		e->tunnels ? (uint32_t)(number % e->tunnels) : (uint16_t)(from_port - FRAME_PORT);
	uint32_t inner = IP4 + UDP + payload;

	memcpy(frame, a->to_mac, 6);
	memcpy(frame + 6, a->from_mac, 6);
	switch (e->kind) {
	case ENCAP_QINQ:
		write_tags(frame, e, e->user + user);
		break;
	case ENCAP_GRE_MPLS:
		write_label(frame, a, e->user + user, inner);
		break;
	case ENCAP_GTPU:
		write_gtpu(frame, a, e->user + user, inner,
			   (uint32_t)(e->tunnels ? number / e->tunnels : number));
		break;
	default:
		put16(frame + 12, TYPE_IP4);
	}
	write_inner(frame + encap_headers(e) - UDP - IP4, a, user, from_port, payload);
}

/*
 * Offset of the inner header, and the packet's length according to the tunnel; 0: no whole header
 * of that kind.
 */
struct inner {
	uint32_t at, length;
};

static struct inner read_tags(const uint8_t *h, uint32_t length)
{
	if (get16(h + ETHERNET + 2) != TYPE_VLAN || get16(h + TAGGED - 2) != TYPE_IP4)
		return (struct inner){0};
	return (struct inner){TAGGED, length - TAGGED};
}

static struct inner read_label(const uint8_t *h)
{
	uint32_t n = ip4_read(h + LABELLED, PROTOCOL_GRE);
	const uint8_t *gre = h + LABELLED + IP4;

	if (!(get32(h + ETHERNET) & BOTTOM_OF_STACK) || n < GRE_KEYED ||
	    get16(gre) != GRE_HAS_KEY || get16(gre + 2) != TYPE_IP4)
		return (struct inner){0};
	return (struct inner){LABELLED + IP4 + GRE_KEYED, n - GRE_KEYED};
}

/* Bytes of the only extension header that is allowed: a container of a known length. 0: other. */
static uint32_t container(const uint8_t *gtp)
{
	if (gtp[11] == GTP_PDU_SESSION && gtp[12] == 1 && (gtp[13] & ~PDU_UPLINK) == 0 &&
	    gtp[15] == 0)
		return CONTAINER;
	if (gtp[11] == GTP_NR_RAN && gtp[12] == 2 && (gtp[13] & NRU_TYPE) == 0 && gtp[19] == 0 &&
	    gtp[20] & PDCP_DATA)
		return NRU_CONTAINER + PDCP;
	return 0;
}

/* Bytes between the fields that each header has and the packet. false: others than are known. */
static bool read_optional(const uint8_t *gtp, uint32_t *bytes)
{
	const uint8_t flags = gtp[0] & (uint8_t)~GTP_NUMBERED;

	if (flags == GTP_EXTENDED) {
		*bytes = container(gtp);
		return *bytes != 0;
	}
	*bytes = gtp[0] & GTP_NUMBERED ? NUMBERS : 0;
	return flags == GTP_FLAGS;
}

static struct inner read_gtpu(const uint8_t *h)
{
	uint32_t n = ip4_read(h + ETHERNET, PROTOCOL_UDP), more;
	const uint8_t *udp = h + ETHERNET + IP4, *gtp = udp + UDP;

	if (get16(udp + 2) != ENCAP_GTPU_PORT || get16(udp + 4) != n || gtp[1] != GTP_PACKET ||
	    !read_optional(gtp, &more))
		return (struct inner){0};
	if (n < UDP + GTP + more || get16(gtp + 2) != n - UDP - GTP)
		return (struct inner){0};
	return (struct inner){FRAME_HEADERS + GTP + more, n - UDP - GTP - more};
}

uint32_t encap_payload(const uint8_t *frame, uint32_t length, uint32_t *headers)
{
	uint8_t h[ENCAP_HEADERS_MAX] = {0};
	struct inner in = {0};
	uint32_t n;

	if (length < ENCAP_QINQ_HEADERS)
		return 0;
	memcpy(h, frame, length < sizeof(h) ? length : sizeof(h));
	switch (get16(h + 12)) {
	case TYPE_SVLAN:
		in = read_tags(h, length);
		break;
	case TYPE_MPLS:
		in = read_label(h);
		break;
	case TYPE_IP4:
		in = read_gtpu(h);
		break;
	}
	if (in.at == 0 || in.at + IP4 + UDP > length || in.length > length - in.at)
		return 0;
	n = ip4_read(h + in.at, PROTOCOL_UDP);
	/* Padding is allowed only after tags. */
	if (n < UDP || n + IP4 > in.length || (in.at != TAGGED && n + IP4 != in.length) ||
	    get16(h + in.at + IP4 + 4) != n)
		return 0;
	*headers = in.at + IP4 + UDP;
	return n - UDP;
}

static void turn_ip(uint8_t *ip)
{
	frame_exchange(ip + 12, ip + 16, 4);
}

/* The other direction has the other type, and keeps only the flow's number. */
static void turn_container(uint8_t *content)
{
	content[0] = content[0] & PDU_TYPE ? 0 : PDU_UPLINK;
	content[1] &= QFI;
}

bool encap_turn(uint8_t *frame, uint32_t headers)
{
	switch (headers) {
	case ENCAP_QINQ_HEADERS:
		break;
	case ENCAP_GRE_MPLS_HEADERS:
		turn_ip(frame + LABELLED);
		break;
	case ENCAP_PDU_HEADERS:
		turn_container(frame + FRAME_HEADERS + 13);
		__attribute__((fallthrough));
	case ENCAP_NRU_HEADERS:
	case ENCAP_GTPU_NUMBERED_HEADERS:
	case ENCAP_GTPU_HEADERS:
		turn_ip(frame + ETHERNET);
		/* GTP-U's port stays if it is the one; a checksum would be wrong now. */
		put16(frame + FRAME_HEADERS - UDP, ENCAP_GTPU_PORT);
		put16(frame + FRAME_HEADERS - 2, 0);
		break;
	default:
		return false;
	}
	frame_exchange(frame, frame + 6, 6);
	turn_ip(frame + headers - UDP - IP4);
	frame_exchange(frame + headers - UDP, frame + headers - UDP + 2, 2);
	return true;
}
