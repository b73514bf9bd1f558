/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs have in common that attack a running chain from inside a function. */
#ifndef DRAY_ATTACK_H
#define DRAY_ATTACK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What one attacker has done, in memory that its lives share; printed as JSON, again and again. */
struct tally {
	_Atomic uint64_t attempts; /* of whatever this class counts */
	_Atomic uint64_t lives;	   /* processes that attacked */
	_Atomic uint64_t refused;  /* lives that ended at the broker's door */
	_Atomic uint64_t escapes;  /* what should have been refused, and was not */
	_Atomic uint64_t joined;   /* connections of a device that the other end accepted */
};

/* One life: begins with a new process, and ends before `until_ns` of the monotonic clock. */
typedef void attack_life(const char *port, struct tally *tally, uint64_t seed, uint64_t until_ns);

/* usage: PROGRAM PORT SECONDS SEED. Lives follow each other; some are killed. */
int attack_main(int argc, char **argv, attack_life *life);

/* In a child: ends when its parent does, also if the parent was killed before this call. */
void attack_end_with(pid_t parent);

/* Where the ports of this function are. */
const char *attack_directory(void);

#endif
