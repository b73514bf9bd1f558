/* SPDX-License-Identifier: Apache-2.0 */
/* The shared-memory transport: from an OFFER to lanes. */
#ifndef DRAY_SHM_H
#define DRAY_SHM_H

#include "generation.h"
#include "lane.h"
#include "wire.h"

/*
 * Check an offer and what came with it, and map the memory without touching it. Takes over the
 * descriptors, even on error. `discarder` closes bells in which descriptors may be. -EPROTO,
 * -EINVAL the offer is wrong; -EPERM seals are missing; -ENOMEM, other errors of mmap.
 */
int shm_map(const struct wire_offer *offer, uint32_t number, int *fds, unsigned count,
	    struct discarder *discarder, struct generation **out);

/* Check for the seals that prevent punching holes, and for holes. 0, -EPERM, -ENODATA: holes. */
int shm_check_sealed(int memfd, uint64_t size);

/* Fault every page in, so that none can fault later. 0 or -errno, never a signal. */
int shm_populate(struct generation *gen, const struct geometry *geometry);

/* Make both owners of queue q. */
int shm_make_lanes(struct generation *gen, const struct wire_offer *offer, unsigned q,
		   const struct lane_options *tx, const struct lane_options *rx);

#endif
