/* SPDX-License-Identifier: Apache-2.0 */
/* What a hostile end does to the memory of a link. */
#ifndef DRAY_TEST_SCRIBBLE_H
#define DRAY_TEST_SCRIBBLE_H

#include "rawend.h"

struct scribbler {
	uint64_t seed, writes;
	/*
	 * Where the victim is in its two lanes: without it hardly any garbage would get past the
	 * check of the index.
	 */
	uint32_t head, returned;
	/* Leave the index words that only the victim writes: the scribbler reads them. */
	bool follows;
};

uint64_t scribble_random(uint64_t *seed);

/* Write to every kind of word of the end's lanes, and to packets. */
void scribble(struct scribbler *s, const struct rawend *end);

/* Everything that the seals forbid. */
void scribble_at_seals(const struct rawend *end);

#endif
