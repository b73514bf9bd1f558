/* SPDX-License-Identifier: Apache-2.0 */
/* IPv4 router (RFC 1812). Fragments are forwarded as they are, and options are not acted upon. */
#include "l3fwd.h"

#include "arp.h"
#include "ip4.h"

enum reason l3fwd_check(const struct port_setup *port, const struct packet *p, struct change *c)
{
	enum reason reason;
	struct ip4 ip;

	reason = arp_or_type(p, TYPE_IP4, &port[p->in], c);
	if (reason || c->reply)
		return reason;
	reason = ip4_read(p, ETHERNET, p->length, &ip);
	if (!reason)
		reason = ip4_forwardable(&ip);
	if (reason)
		return reason;
	c->push = c->strip = ETHERNET + IP4;
	c->l2 = ETHERNET;
	c->keep = p->length - c->strip; /* with the padding of a smallest frame */
	c->destination = ip.destination;
	ip4_copy(c->front + ETHERNET, &ip);
	ip4_hop(c->front + ETHERNET);
	return PASS;
}

enum reason l3fwd_route(const struct port_setup *port, const struct hop *hop, struct change *c)
{
	if (!hop)
		return DROP_ROUTE;
	c->out = hop->port;
	memcpy(c->front, hop->mac, MAC);
	memcpy(c->front + MAC, port[hop->port].mac, MAC);
	put16(c->front + 2 * MAC, TYPE_IP4);
	return port_fits(&port[hop->port], c);
}
