/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sessions in Redis. A batch of sessions goes there as one script, which Redis runs whole or not at
 * all, with a number that Redis remembers: after a lost connection the same batch is sent again and
 * counts once. The script adds to what is there, so workers that have the same session one after
 * the other, or both at once, lose nothing of each other's. Nothing here ever waits.
 */
#ifndef VNF_STORE_H
#define VNF_STORE_H

#include <sys/socket.h>

#include "script.h"
#include "track.h"

struct store_address {
	struct sockaddr_storage address;
	socklen_t length; /* 0: there is no store */
};

struct store_counts {
	_Atomic uint64_t connected; /* 1 or 0 */
	_Atomic uint64_t connects, errors;
	_Atomic uint64_t packets; /* that the store has */
	_Atomic uint64_t refused; /* sessions that it does not take: another type has their name */
	_Atomic uint64_t regressed; /* sessions of which it has less than it had */
	_Atomic uint64_t lag_ns;    /* the longest time from a packet to its session's answer */
};

struct store {
	struct store_counts counts;
	struct store_address to;
	uint64_t lag_ns; /* a session may wait so long for others */
	uint64_t idle_s; /* after which the store forgets a session */
	uint64_t writer; /* this process */
	uint64_t batch;	 /* number of the present batch */
	int fd;
	uint64_t retry_ns;     /* not before then, if there is no connection */
	uint64_t answer_by_ns; /* the connection is given up then */

	unsigned n; /* sessions of the present batch; 0: there is none */
	struct {
		struct tracked *session;
		uint64_t packets, bytes, since_ns;
	} part[SCRIPT_BATCH];
	struct script request;
	uint32_t sent, received; /* bytes */
	char answer[SCRIPT_IN];
	char error[96]; /* the last one that was reported */
};

/* "192.0.2.1:6379", "[2001:db8::1]:6379" or "unix:/path". False if it is anything else. */
bool store_address_read(const char *text, struct store_address *to);

/* 0, or -1: no random numbers. */
int store_open(struct store *s, const struct store_address *to, uint64_t lag_ns, uint64_t idle_ns);
void store_close(struct store *s);

/* Do what can be done at once. `all`: sessions need not wait for others. */
void store_turn(struct store *s, struct track *t, bool all);

/* Everything is there. */
bool store_has_all(const struct store *s, const struct track *t);

#endif
