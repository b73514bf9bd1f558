/* SPDX-License-Identifier: Apache-2.0 */
/* Sending on a direction, whatever the packets' owners are. */
#ifndef DRAY_SEND_H
#define DRAY_SEND_H

#include "direction.h"

/* Whether this direction can send a packet at all. */
bool direction_can_send(const struct direction *dir, const struct dray_pkt *pkt);

/* Drop a packet that cannot be sent, or count the misuse. */
void direction_drop(struct direction *dir, struct dray_pkt *pkt);

/* Copy a packet to a buffer of this direction. False: there is none. */
bool direction_copy(struct direction *dir, struct dray_pkt *copy, const struct dray_pkt *pkt);

/* Send packets of this direction's owner, and capture them. */
unsigned send_captured(struct direction *dir, struct dray_pkt *pkts, unsigned n);

/*
 * Send packets whose buffers belong to another owner, by copying them. Returns how many were
 * consumed: an original is consumed once its copy is sent. A first packet that cannot be sent at
 * all is dropped.
 */
unsigned send_copies(struct direction *dir, struct dray_pkt *pkts, unsigned n);

static inline unsigned send_owner(struct direction *dir, struct dray_pkt *pkts, unsigned n)
{
	if (unlikely(dir->capture))
		return send_captured(dir, pkts, n);
	return dir->owner->ops->send(dir->owner, pkts, n);
}

/* Send packets, as dray_tx_burst without traffic classes. */
static inline unsigned direction_send(struct direction *dir, struct dray_pkt *pkts, unsigned n)
{
	unsigned i = 0, used;

	while (i < n) {
		if (likely(dir->owner && pkts[i].owner == dir->owner))
			used = send_owner(dir, &pkts[i], n - i);
		else
			used = send_copies(dir, &pkts[i], n - i);
		i += used;
		if (used == 0)
			break;
	}
	return i;
}

#endif
