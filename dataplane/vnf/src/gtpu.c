/* SPDX-License-Identifier: Apache-2.0 */
/* GTP-U, both directions. */
#include "gtpu.h"

#include <stdlib.h>

#include "arp.h"
#include "gtpu_header.h"
#include "ip4.h"

int64_t gtpu_open(struct gtpu *gtpu)
{
	if (table_open(&gtpu->by_teid, gtpu->count) < 0 ||
	    table_open(&gtpu->by_ue, gtpu->count) < 0)
		return -1;
	for (uint32_t i = 0; i < gtpu->count; i++) {
		if (!table_put(&gtpu->by_teid, gtpu->sessions[i].here, i) ||
		    !table_put(&gtpu->by_ue, gtpu->sessions[i].ue, i))
			return (int64_t)i + 1;
	}
	return 0;
}

void gtpu_close(struct gtpu *gtpu)
{
	table_close(&gtpu->by_teid);
	table_close(&gtpu->by_ue);
	free(gtpu->sessions);
	gtpu->sessions = NULL;
}

/*
 * TS 38.415, 5.4.1 and 5.5.2: which type of PDU session information goes in which direction, and
 * the flow must be the session's.
 */
static enum reason check_flow(const struct gtpu *gtpu, const struct session *s,
			      const struct gtpu_header *h)
{
	if (gtpu->plain)
		return PASS;
	if (!h->has_pdu_session || h->pdu_type != (gtpu->gnb ? PDU_DOWNLINK : PDU_UPLINK))
		return DROP_EXTENSION;
	return h->qfi == s->qfi ? PASS : DROP_QFI;
}

/*
 * The UPF is a router and makes a router's checks (RFC 1812); the gNB passes on what arrives in the
 * session's tunnel.
 */
static enum reason check_inner(const struct gtpu *gtpu, const struct session *s,
			       const struct ip4 *ip)
{
	if ((gtpu->gnb ? ip->destination : ip->source) != s->ue)
		return DROP_SOURCE;
	return gtpu->gnb ? PASS : ip4_forwardable(ip);
}

static void write_inner(const struct gtpu *gtpu, uint8_t *to, const struct ip4 *ip)
{
	ip4_copy(to, ip);
	if (!gtpu->gnb)
		ip4_hop(to);
}

static enum reason echo(const struct port_setup *own, const struct packet *p,
			const struct ip4 *outer, const struct gtpu_header *h, struct change *c)
{
	c->push = ETHERNET + IP4 + UDP + GTPU_ECHO;
	c->l2 = ETHERNET;
	c->strip = (uint16_t)c->push;
	c->keep = 0;
	c->out = (uint8_t)p->in;
	c->reply = REPLY_ECHO;
	if (p->length < c->strip)
		c->strip = (uint16_t)p->length;
	port_ethernet(own, c->front, TYPE_IP4);
	memcpy(c->front, p->head + MAC, MAC);
	ip4_write(c->front + ETHERNET, own->ip, outer->source, PROTOCOL_UDP, 0, UDP + GTPU_ECHO);
	gtpu_write_echo(c->front + ETHERNET + IP4, h);
	return PASS;
}

/* A G-PDU with a good header. */
static enum reason deliver(const struct gtpu *gtpu, const struct port_setup *port,
			   const struct packet *p, const struct ip4 *outer,
			   const struct gtpu_header *h, struct change *c)
{
	const struct session *s;
	enum reason reason;
	uint32_t index;
	struct ip4 ip;

	if (!table_get(&gtpu->by_teid, h->teid, &index))
		return DROP_USER;
	s = &gtpu->sessions[index];
	reason = check_flow(gtpu, s, h);
	if (!reason)
		reason = ip4_read(p, h->payload, h->end, &ip);
	if (!reason)
		reason = check_inner(gtpu, s, &ip);
	if (reason)
		return reason;
	c->out = (uint8_t)(p->in + 1);
	c->push = ETHERNET + IP4;
	c->l2 = ETHERNET;
	c->strip = (uint16_t)(ip.offset + IP4);
	c->keep = ip.total - IP4;
	port_ethernet(&port[c->out], c->front, TYPE_IP4);
	write_inner(gtpu, c->front + ETHERNET, &ip);
	reason = ip4_decapsulate_ecn(outer, c->front + ETHERNET);
	return reason ? reason : port_fits(&port[c->out], c);
}

enum reason gtpu_decapsulate(const struct gtpu *gtpu, const struct port_setup *port,
			     const struct packet *p, struct change *c)
{
	struct gtpu_header h;
	enum reason reason;
	struct ip4 outer;

	reason = arp_or_type(p, TYPE_IP4, &port[p->in], c);
	if (reason || c->reply)
		return reason;
	reason = ip4_read(p, ETHERNET, p->length, &outer);
	if (reason)
		return reason;
	if (outer.destination != port[p->in].ip)
		return DROP_TUNNEL;
	reason = gtpu_read(p, &outer, &h);
	if (reason)
		return reason;
	if (h.message == GTPU_ECHO_REQUEST)
		return echo(&port[p->in], p, &outer, &h, c);
	return deliver(gtpu, port, p, &outer, &h, c);
}

enum reason gtpu_encapsulate(const struct gtpu *gtpu, const struct port_setup *port,
			     const struct packet *p, struct change *c)
{
	unsigned out = p->in - 1;
	const struct session *s;
	enum reason reason;
	uint32_t index;
	struct ip4 ip;

	reason = arp_or_type(p, TYPE_IP4, &port[p->in], c);
	if (reason || c->reply)
		return reason;
	reason = ip4_read(p, ETHERNET, p->length, &ip);
	if (!reason && !gtpu->gnb)
		reason = ip4_forwardable(&ip);
	if (reason)
		return reason;
	if (!table_get(&gtpu->by_ue, gtpu->gnb ? ip.source : ip.destination, &index))
		return DROP_USER;
	s = &gtpu->sessions[index];
	c->out = (uint8_t)out;
	c->push = (uint16_t)(ETHERNET + IP4 + UDP + gtpu_header_bytes(gtpu->plain) + IP4);
	c->l2 = ETHERNET;
	c->strip = ETHERNET + IP4;
	c->keep = ip.total - IP4;
	reason = port_fits(&port[out], c);
	if (reason)
		return reason;
	port_ethernet(&port[out], c->front, TYPE_IP4);
	ip4_write(c->front + ETHERNET, port[out].ip, s->peer, PROTOCOL_UDP, ip.at[1],
		  UDP + gtpu_header_bytes(gtpu->plain) + ip.total);
	gtpu_write(c->front + ETHERNET + IP4, s->there, gtpu->plain,
		   gtpu->gnb ? PDU_UPLINK : PDU_DOWNLINK, s->qfi, ip.total);
	write_inner(gtpu, c->front + c->push - IP4, &ip);
	return PASS;
}

bool gtpu_user(const struct gtpu *gtpu, const struct packet *p, uint32_t *user)
{
	const uint32_t teid = ETHERNET + IP4 + UDP + 4; /* as all senders do, without IP options */

	if (p->have < ETHERNET + IP4 || get16(p->head + 12) != TYPE_IP4 ||
	    p->head[ETHERNET] != 0x45)
		return false;
	if (p->in % 2)
		return table_get(&gtpu->by_ue, get32(p->head + ETHERNET + (gtpu->gnb ? 12 : 16)),
				 user);
	return p->have >= teid + 4 && p->head[ETHERNET + 9] == PROTOCOL_UDP &&
	       table_get(&gtpu->by_teid, get32(p->head + teid), user);
}
