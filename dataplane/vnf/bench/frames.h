/* SPDX-License-Identifier: Apache-2.0 */
/* The packets of the bench: smallest frames of many users. */
#ifndef VNF_BENCH_FRAMES_H
#define VNF_BENCH_FRAMES_H

#include "function.h"

#define FRAMES 4096u /* different ones */
#define FRAME_ROOM 128u

struct frame {
	uint32_t length;
	uint8_t bytes[FRAME_ROOM];
};

/* What the function takes on port `in`, each from a user of its own as far as there are so many. l3fwd: to the addresses. */
void frames_make(struct frame *frames, const struct function *f, unsigned in, const uint32_t *destinations);

#endif
