/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GTP-U over IPv4 (3GPP TS 29.281) on the N3 interface, from either end. Ports come in pairs: an
 * even one to N3, the odd one after it to the plain packets (a UPF's data network; a gNB's
 * radio).
 */
#ifndef VNF_GTPU_H
#define VNF_GTPU_H

#include <stdbool.h>

#include "port_setup.h"
#include "table.h"

#define GTPU_PORT 2152u
#define SESSIONS_MAX 1048576u

struct session {
	uint32_t ue;	      /* address of the user's equipment */
	uint32_t here, there; /* tunnel end point identifiers: received, and sent */
	uint32_t peer;	      /* address of the other end */
	uint8_t qfi;	      /* QoS flow identifier, 0 to 63 */
};

struct gtpu {
	bool gnb;   /* this is the gNB's end; else the UPF's */
	bool plain; /* without PDU session extension header, as on S1-U */
	struct session *sessions;
	uint32_t count;
	struct table by_teid, by_ue;
};

/*
 * Index the sessions. 0; -1: no memory; else the number (from 1) of the first session whose TEID or
 * address another session has as well.
 */
int64_t gtpu_open(struct gtpu *gtpu);
void gtpu_close(struct gtpu *gtpu);

/* Packets from N3, and packets to N3. */
enum reason gtpu_decapsulate(const struct gtpu *gtpu, const struct port_setup *port,
			     const struct packet *p, struct change *c);
enum reason gtpu_encapsulate(const struct gtpu *gtpu, const struct port_setup *port,
			     const struct packet *p, struct change *c);

/* The number of the packet's session, for the load balancer. */
bool gtpu_user(const struct gtpu *gtpu, const struct packet *p, uint32_t *user);

#endif
