/* SPDX-License-Identifier: Apache-2.0 */
/* The option --bulk: a second stream that shares the port with the first. */
#ifndef GEN_BULK_H
#define GEN_BULK_H

#include <stdint.h>

#include "units.h"

struct bulk {
	struct rate rate; /* per_second 0: there is no second stream */
	uint32_t size;	  /* of a frame; bytes */
	uint32_t flows;
	uint8_t dscp;
};

/* The number of the bulk stream that goes with this one: the next. */
static inline uint32_t bulk_stream(uint32_t stream)
{
	return stream + 1;
}

/* Read "20Mbps[,size=1514][,dscp=0][,flows=1]". Returns NULL, or what is wrong. */
const char *bulk_read(const char *text, struct bulk *bulk);

#endif
