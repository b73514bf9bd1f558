/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Encapsulations between the Ethernet header and the inner IPv4 header: two VLAN tags, GRE with an
 * MPLS label, or GTP-U.
 */
#ifndef GEN_ENCAP_H
#define GEN_ENCAP_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Bytes before the payload. The receiver recognises the encapsulation by this number; plain IPv4
 * has 42, IPv6 has 62.
 */
#define ENCAP_QINQ_HEADERS 50u	   /* 14 + 2 * 4 + 20 + 8 */
#define ENCAP_GRE_MPLS_HEADERS 74u /* 14 + 4 + 20 + 8 + 20 + 8 */
#define ENCAP_GTPU_HEADERS 78u	   /* 14 + 20 + 8 + 8 + 20 + 8 */
#define ENCAP_PDU_HEADERS 86u	   /* the same, with 8 bytes of the PDU session container */
/* with 12 bytes of the NR RAN container instead, and a PDCP header */
#define ENCAP_NRU_HEADERS 93u
#define ENCAP_HEADERS_MAX ENCAP_NRU_HEADERS
/* with neither, but 4 bytes of a sequence number or an N-PDU number: only received */
#define ENCAP_GTPU_NUMBERED_HEADERS 82u
#define ENCAP_GTPU_PORT 2152u

enum encap_kind { ENCAP_NONE, ENCAP_QINQ, ENCAP_GRE_MPLS, ENCAP_GTPU };

/* The inner address that identifies the user; the flow's number is added to it. */
enum encap_spread { ENCAP_ONE_USER, ENCAP_SPREAD_FROM, ENCAP_SPREAD_TO };

struct frame_address;

struct encap {
	enum encap_kind kind;
	enum encap_spread spread;
	uint32_t tag;	  /* S-tag, or label */
	uint32_t user;	  /* of flow 0: C-tag, GRE key, or TEID; each flow has the next */
	uint32_t tunnels; /* GTP-U: consecutive packets belong to so many users; 0: a flow is one */
	bool container;	  /* GTP-U with the PDU session container */
	bool nru;	  /* GTP-U of F1-U: with the NR RAN container, around a PDCP PDU */
	bool downlink;	  /* its type: 0, to the radio, instead of 1 */
	uint8_t qfi;
	uint32_t from, to; /* the tunnel's ends */
};

/* Bytes before the payload. */
uint32_t encap_headers(const struct encap *encap);

/*
 * Read "qinq:s=1,c=1", "gre-mpls:label=3,key=0,from=IP,to=IP" or
 * "gtpu:teid=1,from=IP,to=IP[,tunnels=10000][,pdu=up|down,qfi=9][,nru=dl]"; the spread does not
 * change. Returns NULL, or what is wrong.
 */
const char *encap_read(const char *text, struct encap *encap);

/* NULL if each of so many flows can have its own user; otherwise what is wrong. */
const char *encap_check_flows(const struct encap *encap, uint32_t flows);

/* Whether packets of one flow have headers of their own. */
static inline bool encap_varies(const struct encap *encap)
{
	return encap->tunnels > 0;
}

/* As frame_write, to an address that has an encap. */
void encap_write(uint8_t *frame, const struct frame_address *address, uint16_t from_port,
		 uint32_t payload, uint64_t number);

/*
 * As frame_payload, which calls it for frames without plain IP; 0 if there is none of the
 * encapsulations.
 */
uint32_t encap_payload(const uint8_t *frame, uint32_t length, uint32_t *headers);

/* As frame_turn, for a frame with headers of that kind. false: of another kind. */
bool encap_turn(uint8_t *frame, uint32_t headers);

#endif
