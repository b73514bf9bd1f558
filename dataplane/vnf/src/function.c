/* SPDX-License-Identifier: Apache-2.0 */
/* The functions by mode. */
#include "function.h"

#include "flow.h"
#include "ip4.h"

const char *mode_name(enum mode mode)
{
	static const char *const names[] = {
		[MODE_NONE] = "none",	   [MODE_L2FWD] = "l2fwd", [MODE_L3FWD] = "l3fwd",
		[MODE_BNG] = "bng",	   [MODE_GTPU] = "gtpu",   [MODE_LB] = "lb",
		[MODE_SESSION] = "session"};

	return names[mode];
}

/*
 * Tunnels have room for options in both headers and, in GTP-U, for more extensions than senders
 * use.
 */
uint32_t function_snapshot(enum mode mode)
{
	static const uint32_t bytes[] = {[MODE_NONE] = 0,
					 [MODE_L2FWD] = 0,
					 [MODE_L3FWD] = ETHERNET + IP4_MAX,
					 [MODE_BNG] = SNAPSHOT,
					 [MODE_GTPU] = SNAPSHOT,
					 [MODE_LB] = FLOW_SNAPSHOT,
					 [MODE_SESSION] = FLOW_SNAPSHOT};

	return bytes[mode];
}

unsigned function_opposite(const struct function *f, unsigned port)
{
	return (port ^ 1) < f->ports ? port ^ 1 : port;
}

/* Nothing is read: only addresses are written. */
static enum reason l2fwd(const struct function *f, const struct packet *p, struct change *c)
{
	if (p->length < ETHERNET)
		return DROP_SHORT;
	c->out = (uint8_t)function_opposite(f, p->in);
	c->push = c->strip = 2 * MAC;
	c->l2 = c->push;
	c->keep = p->length - 2 * MAC;
	memcpy(c->front, f->port[c->out].next, MAC);
	memcpy(c->front + MAC, f->port[c->out].mac, MAC);
	return PASS;
}

/* Counted, and sent back. */
static enum reason session(const struct function *f, const struct packet *p, struct change *c)
{
	enum reason reason = keep_packet(f->keep, p);

	return reason ? reason : l2fwd(f, p, c);
}

static enum reason none(const struct function *f, const struct packet *p, struct change *c)
{
	c->out = (uint8_t)function_opposite(f, p->in);
	c->push = c->strip = c->l2 = 0;
	c->keep = p->length;
	return PASS;
}

enum reason function_handle(const struct function *f, const struct packet *p, struct change *c)
{
	c->reply = REPLY_NONE;
	switch (f->mode) {
	case MODE_L2FWD:
		return l2fwd(f, p, c);
	case MODE_L3FWD:
		return l3fwd_check(f->port, p, c);
	case MODE_BNG:
		return p->in % 2 ? bng_down(&f->bng, f->port, p, c)
				 : bng_up(&f->bng, f->port, p, c);
	case MODE_GTPU:
		return p->in % 2 ? gtpu_encapsulate(&f->gtpu, f->port, p, c)
				 : gtpu_decapsulate(&f->gtpu, f->port, p, c);
	case MODE_LB:
		return lb_handle(&f->lb, p, c);
	case MODE_SESSION:
		return session(f, p, c);
	default:
		return none(f, p, c);
	}
}

static uint32_t hash_addresses(const struct packet *p)
{
	if (p->have >= ETHERNET + IP4 && get16(p->head + 12) == TYPE_IP4)
		return get32(p->head + ETHERNET + 12) ^ get32(p->head + ETHERNET + 16);
	if (p->have >= 2 * MAC)
		return get32(p->head + 2) ^ get32(p->head + MAC + 2);
	return 0;
}

unsigned function_worker(const struct function *f, const struct packet *p, unsigned n)
{
	uint32_t key;

	if (n < 2)
		return 0;
	if (!(f->mode == MODE_BNG && bng_user(&f->bng, p, &key)) &&
	    !(f->mode == MODE_GTPU && gtpu_user(&f->gtpu, p, &key)))
		key = hash_addresses(p);
	return (unsigned)((uint64_t)(key * 0x9e3779b1u) * n >> 32);
}
