/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages that are due in the slots of a radio. Slots have one length, and are counted from 0 of
 * CLOCK_MONOTONIC at both ends.
 */
#ifndef GEN_SLOTS_H
#define GEN_SLOTS_H

#include <stdint.h>

#define SLOTS_GROUPS 15u /* at most */
#define SLOTS_BURST 16u	 /* at most */
#define SLOTS_KINDS 2u	 /* of messages, which have windows of their own */

/* The number of a message that belongs to no slot, such as an end packet. */
#define SLOTS_NO_NUMBER UINT64_MAX

/* Messages have numbers: from 0 in slot 0, group by group. */
struct slots {
	uint64_t slot_ns;		  /* 0: there are none */
	uint32_t groups;		  /* in each slot */
	uint32_t burst;			  /* messages of a group, which are due together */
	uint32_t first;			  /* the group that a schedule begins with */
	uint64_t offset_ns[SLOTS_GROUPS]; /* when each is due in its slot; ascending */
	uint32_t sizes[SLOTS_GROUPS * SLOTS_BURST]; /* bytes of the frame of each message */
};

/* When a message may arrive, in ns of CLOCK_MONOTONIC. */
struct slots_window {
	uint32_t kind; /* of message, below SLOTS_KINDS */
	uint64_t opens, closes;
	uint64_t send_by; /* what is sent later is not the link's fault */
};

/* ns of a slot with that subcarrier spacing in kHz. */
uint64_t slots_length(uint32_t scs);

/* Bytes of the frame of message `number`, and of the longest. */
uint32_t slots_size(const struct slots *slots, uint64_t number);
uint32_t slots_size_max(const struct slots *slots);

/* Messages in a second. */
uint64_t slots_rate(const struct slots *slots);

/* The first message of the first group in the first slot that begins at this time or later. */
uint64_t slots_first(const struct slots *slots, uint64_t ns);

/* When a message is due, and how many are due before a time, both counted from number 0. */
uint64_t slots_due(const struct slots *slots, uint64_t number);
uint64_t slots_before(const struct slots *slots, uint64_t ns);

/* The slot nearest to `ns` whose number modulo `all` is that. */
uint64_t slots_nearest(const struct slots *slots, uint64_t number, uint64_t all, uint64_t ns);

#endif
