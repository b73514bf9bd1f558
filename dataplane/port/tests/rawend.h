/* SPDX-License-Identifier: Apache-2.0 */
/* An end that speaks the protocol without the library: so that it can break it. */
#ifndef DRAY_TEST_RAWEND_H
#define DRAY_TEST_RAWEND_H

#include "lane.h"
#include "wire.h"

struct rawend {
	int fd, memfd;
	int bells[16];
	struct wire_offer offer;
	uint32_t generation;
	uint8_t *memory;
	struct lane_view tx, rx; /* of queue 0 */
};

/* Go through the whole handshake; waits for the other end. */
struct rawend rawend_join(const char *directory, const char *name);
void rawend_leave(struct rawend *end);

#endif
