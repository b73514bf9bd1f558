/* SPDX-License-Identifier: Apache-2.0 */
/* UDP and GTP-U headers: read and written. */
#ifndef VNF_GTPU_HEADER_H
#define VNF_GTPU_HEADER_H

#include <stdbool.h>
#include <stdint.h>

#include "ip4.h"

/* Message types: TS 29.281, table 6.1-1. */
#define GTPU_ECHO_REQUEST 1u
#define GTPU_ECHO_RESPONSE 2u
#define GTPU_G_PDU 255u

/* bytes of an echo response: header with sequence number, recovery element */
#define GTPU_ECHO 14u

/* PDU session information: TS 38.415, section 5.5.3.1. */
#define PDU_DOWNLINK 0u
#define PDU_UPLINK 1u

struct gtpu_header {
	uint32_t message, teid;
	uint32_t source_port;
	uint32_t sequence;     /* 0 if there is none */
	uint32_t payload, end; /* offsets in the packet */
	bool has_pdu_session;
	uint8_t pdu_type, qfi;
};

/* Read the headers after the outer IP header: a G-PDU or an echo request. */
enum reason gtpu_read(const struct packet *p, const struct ip4 *outer, struct gtpu_header *h);

/* Bytes of the GTP-U header that gtpu_write writes after the UDP header. */
static inline uint32_t gtpu_header_bytes(bool plain)
{
	return plain ? 8 : 16;
}

/* UDP and GTP-U before a T-PDU of so many bytes. */
void gtpu_write(uint8_t *to, uint32_t teid, bool plain, uint8_t pdu_type, uint8_t qfi,
		uint32_t bytes);

/* UDP and echo response. */
void gtpu_write_echo(uint8_t *to, const struct gtpu_header *request);

#endif
