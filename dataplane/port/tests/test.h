/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of libdray have in common. */
#ifndef DRAY_TEST_H
#define DRAY_TEST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "broker.h"
#include "check.h"
#include "clock.h"
#include "dray.h"

/*
 * How long a test waits for what must happen: a minute. DRAY_TEST_PATIENCE is how many seconds a
 * slow machine needs for what takes 20 elsewhere.
 */
static inline uint64_t test_patience_ns(void)
{
	const char *seconds = getenv("DRAY_TEST_PATIENCE");

	return (seconds ? strtoull(seconds, NULL, 10) : 20) * 3000000000ull;
}

/* Runs until the condition holds; fails after that time. `work` is done in between. */
#define UNTIL(condition, ...)                                                                      \
	do {                                                                                       \
		uint64_t until_ = clock_ns() + test_patience_ns();                                 \
		while (!(condition)) {                                                             \
			CHECK(clock_ns() < until_ && "in time: " #condition);                      \
			__VA_ARGS__;                                                               \
		}                                                                                  \
	} while (0)

static inline void skip(const char *reason)
{
	fprintf(stderr, "skipped: %s\n", reason);
	_exit(77);
}

/* A link with both ends in this process, on a broker that is a thread. */
struct pair {
	struct broker *broker;
	struct dray_port *a, *b;
};

struct dray_port *test_open(struct broker *broker, const char *name, uint32_t mode, uint32_t flags);
bool test_up(struct dray_port *port);
uint32_t test_generation(struct dray_port *port);
void test_service(struct dray_port *a, struct dray_port *b);
struct dray_stats test_stats(struct dray_port *port);

/* broker: NULL is the defaults; mode and flags are those of both ends. */
struct pair test_pair(const struct broker_options *broker, uint32_t mode, uint32_t flags);
void test_pair_close(struct pair *pair);

/*
 * A packet of `length` bytes that follow from `seed`, with the seed at its beginning; checked by
 * the other.
 */
void test_fill(struct dray_pkt *pkt, uint32_t length, uint32_t seed);
void test_check(const struct dray_pkt *pkt, uint32_t length, uint32_t seed);

/* Send one packet, or receive exactly one, with deadlines. */
void test_send(struct dray_port *port, unsigned queue, uint32_t length, uint32_t seed);
void test_receive(struct dray_port *port, unsigned queue, uint32_t length, uint32_t seed);

/* Release one packet in a new thread, and wait for that thread. */
void test_release_elsewhere(struct dray_pkt *pkt);

/* How many descriptors this process has open: to find leaks. */
unsigned test_open_fds(void);

#endif
