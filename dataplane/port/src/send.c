/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of other owners are copied, and captured ones are seen before they leave. */
#include "send.h"

#include <string.h>

#define COPY_BATCH 32

/* Capture before sending: afterwards the packets belong to the peer. */
unsigned send_captured(struct direction *dir, struct dray_pkt *pkts, unsigned n)
{
	struct dray_owner *h = dir->owner;
	unsigned fit, used;

	for (fit = 0; fit < n && pkts[fit].owner == h && pkts[fit].length - 1 < pkts[fit].room;
	     fit++)
		;
	if (fit == 0)
		return h->ops->send(h, pkts, 1);
	capture_ring_fill(dir->capture, pkts, fit);
	used = h->ops->send(h, pkts, fit);
	capture_ring_publish(dir->capture, used);
	return used;
}

static void drop(struct direction *dir, struct dray_pkt *p)
{
	count(&dir->counters, COUNT_TX_DROPPED, 1);
	dray_release(p, 1);
}

static void copy_packet(struct dray_pkt *to, const struct dray_pkt *from)
{
	memcpy(to->data, from->data, from->length);
	to->length = from->length;
	to->flags = from->flags;
	to->vlan = from->vlan;
	to->hash = from->hash;
	to->meta = from->meta;
}

bool direction_can_send(const struct direction *dir, const struct dray_pkt *p)
{
	return dir->owner && p->owner && p->length > 0 && p->length <= p->room &&
	       (p->length <= dir->generation->packet_max ||
		p->length <= dir->generation->message_max);
}

void direction_drop(struct direction *dir, struct dray_pkt *p)
{
	if (!p->owner)
		count(&dir->counters, COUNT_MISUSE, 1);
	else
		drop(dir, p);
}

bool direction_copy(struct direction *dir, struct dray_pkt *copy, const struct dray_pkt *p)
{
	if (!dir->owner->ops->alloc(dir->owner, copy, 1, p->length))
		return false;
	copy_packet(copy, p);
	return true;
}

unsigned send_copies(struct direction *dir, struct dray_pkt *pkts, unsigned n)
{
	struct dray_pkt copies[COPY_BATCH];
	struct dray_owner *h = dir->owner;
	unsigned made, sent = 0;

	if (!direction_can_send(dir, &pkts[0])) {
		direction_drop(dir, &pkts[0]);
		return 1;
	}
	for (made = 0; made < n && made < COPY_BATCH && pkts[made].owner != h &&
		       direction_can_send(dir, &pkts[made]);
	     made++)
		if (!direction_copy(dir, &copies[made], &pkts[made]))
			break;
	if (made)
		sent = send_owner(dir, copies, made);
	count(&dir->counters, COUNT_TX_COPIED, sent);
	dray_release(pkts, sent);
	dray_release(&copies[sent], made - sent); /* the device has no room now */
	return sent;
}
