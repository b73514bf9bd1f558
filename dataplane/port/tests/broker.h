/* SPDX-License-Identifier: Apache-2.0 */
/* A broker for tests: one link between the ports "a" and "b". */
#ifndef DRAY_TEST_BROKER_H
#define DRAY_TEST_BROKER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "geometry.h"
#include "wire.h"

struct broker_options {
	uint32_t queues;	  /* default 1 */
	struct geometry geometry; /* 0: the default of each field */
	uint32_t mtu;		  /* default 1500 */
	uint32_t sample_shift;	  /* default 6; SAMPLE_NONE */
	bool sample_all;	  /* shift 0 */
	uint32_t hold_quota, hold_policy;
	uint64_t features;	     /* that the broker knows; default all */
	struct wire_classes classes; /* of end "a"; default: none */
	const char *directory;	     /* default: a new one, removed at the end */
};

struct broker;

/*
 * As a thread of this process, or as a child of it (call it before there are threads). NULL:
 * defaults.
 */
struct broker *broker_start(const struct broker_options *options);
struct broker *broker_fork(const struct broker_options *options);
void broker_stop(struct broker *broker);

/* For a test that fails: remove what its brokers have left in the file system. */
void broker_clean_up(void);

const char *broker_directory(const struct broker *broker);
pid_t broker_pid(const struct broker *broker);

/*
 * Move the link of a broker thread: to network devices (one per end, in this network namespace), or
 * back to memory.
 */
void broker_move_netdev(struct broker *broker, const char *device_a, const char *device_b);
void broker_move_shm(struct broker *broker);

/* The telemetry memfd of an end (0 is "a") of a broker thread. */
int broker_telemetry(const struct broker *broker, unsigned end);

/* Have end "a" captured to a memfd, which is closed; NULL stops it. */
void broker_capture(struct broker *broker, const struct wire_capture *start, int fd);

/* What the end has answered since: 0, an errno value, or -1: nothing yet. */
int broker_captured(const struct broker *broker);

/* The geometry that the options give, with its size. */
struct geometry broker_geometry(const struct broker_options *options);

/* A memfd of that size, every page faulted in, with the seals. */
int broker_memfd(uint64_t size, int seals);

#endif
