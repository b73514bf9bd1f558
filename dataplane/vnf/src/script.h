/* SPDX-License-Identifier: Apache-2.0 */
/* The script with which a batch of sessions goes to Redis, and its answer: bytes, no sockets. */
#ifndef VNF_SCRIPT_H
#define VNF_SCRIPT_H

#include "flow.h"

#define SCRIPT_BATCH 128u
#define SCRIPT_OUT 65536u /* bytes: the longest request */
#define SCRIPT_IN 8192u	  /* bytes: no right answer is longer */

struct script {
	uint32_t bytes;
	char text[SCRIPT_OUT];
};

/* Begin the request of n sessions; then comes script_key of each, then script_values of each. */
void script_begin(struct script *s, unsigned n, uint64_t writer);
void script_key(struct script *s, const struct flow_key *key);
void script_batch(struct script *s, uint64_t number, uint64_t seconds);
void script_values(struct script *s, uint64_t id, uint64_t packets, uint64_t bytes);

struct script_answer {
	uint64_t id;	/* 0: Redis refused this session */
	uint64_t total; /* packets of the session, by all workers */
};

/*
 * Read an answer of n sessions. 1: the answers are filled in. 0: it is not whole yet. -1: it is
 * something else, and *error says what; up to SCRIPT_IN bytes decide that.
 */
int script_parse(const char *in, uint32_t bytes, unsigned n, struct script_answer *answers,
		 const char **error);

#endif
