/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When which packets are due: an absolute schedule, so that what is late does not move what
 * follows.
 */
#ifndef GEN_SCHEDULE_H
#define GEN_SCHEDULE_H

#include "options.h"

struct schedule {
	bool imix, bits;
	uint32_t size, smallest;
	int32_t layer_bytes;
	uint64_t rate;	/* packets or bits a second; 0: no schedule, always due */
	uint32_t burst; /* packets due at one moment */
	uint64_t start_ns;
	uint64_t packets; /* that are past */
	uint64_t units;	  /* that those are: packets or bits */
};

struct schedule schedule_begin(const struct options *options, uint64_t start_ns);

/* When the next burst is due; start_ns always if there is no rate. */
uint64_t schedule_due(const struct schedule *schedule);

/* Bytes of the frame of packet i, counted from the first of all. */
uint32_t schedule_size(const struct schedule *schedule, uint64_t packet);

/* n packets are past, whether they were sent or not. */
void schedule_pass(struct schedule *schedule, uint32_t n);

/* Mean ns between two bursts; 0 without a rate. */
uint64_t schedule_interval(const struct schedule *schedule);

#endif
