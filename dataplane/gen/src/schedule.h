/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When packets are due: an absolute schedule, so that a late packet does not delay the next ones.
 */
#ifndef GEN_SCHEDULE_H
#define GEN_SCHEDULE_H

#include "options.h"

struct schedule {
	bool imix, bits;
	uint32_t size, smallest;
	int32_t layer_bytes;
	uint64_t rate;		   /* packets or bits a second; 0: no schedule, always due */
	uint32_t burst;		   /* packets due at the same time */
	const struct slots *slots; /* NULL: at a rate */
	uint64_t first;		   /* number of the first packet */
	uint64_t start_ns;
	uint64_t packets; /* whose time is past */
	uint64_t units;	  /* the same in units of the rate: packets or bits */
};

struct schedule schedule_begin(const struct options *options, uint64_t start_ns);

/* When the next burst is due; start_ns always if there is no rate. */
uint64_t schedule_due(const struct schedule *schedule);

/* Whether frames have different sizes. */
static inline bool schedule_is_mixed(const struct schedule *schedule)
{
	return schedule->imix || schedule->slots;
}

/* Bytes of the frame of packet i, counted from the first of all. */
uint32_t schedule_mixed_size(const struct schedule *schedule, uint64_t packet);

static inline uint32_t schedule_size(const struct schedule *schedule, uint64_t packet)
{
	return schedule_is_mixed(schedule) ? schedule_mixed_size(schedule, packet) : schedule->size;
}

/* The number of the next packet, for the headers of frames that depend on it. */
static inline uint64_t schedule_number(const struct schedule *schedule)
{
	return schedule->first + schedule->packets;
}

/* How many packets are due with the next one. */
uint32_t schedule_burst(const struct schedule *schedule);

/* How many packets, in whole bursts, are due before that time; of a mix, in whole cycles. */
uint64_t schedule_overdue(const struct schedule *schedule, uint64_t before);

/* Move past n packets, whether they were sent or not. */
void schedule_pass(struct schedule *schedule, uint64_t n);

/* Mean ns between two bursts; 0 without a rate. */
uint64_t schedule_interval(const struct schedule *schedule);

#endif
