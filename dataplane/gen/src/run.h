/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the roles share: stopping, intervals, results. */
#ifndef GEN_RUN_H
#define GEN_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "cpus.h"
#include "io.h"
#include "json.h"
#include "options.h"
#include "tracker.h"

enum exit_status { EXIT_DONE = 0, EXIT_ERROR = 1, EXIT_USAGE = 2, EXIT_NOT_CLEAN = 4 };

struct run {
	const struct options *options;
	struct io *io, *to;
	uint64_t started_ns, started_cpu_ns; /* when it was ready */
	struct cpus cpus;
	uint64_t serviced_ns;
	/* called while the port is full. NULL: wait for room */
	void (*meanwhile)(void *);
	void *meanwhile_of;
	uint64_t interval, interval_began_ns;
	struct tracker_counts last; /* at the beginning of this interval */
	uint64_t last_expected, last_drops, last_sent, last_unsent;
	int error;		 /* -errno that ended it */
	const struct io *failed; /* the port of that error; NULL: `io` */
};

/* From now on SIGINT and SIGTERM end the run; a second one kills. */
void run_catch_signals(void);
bool run_stopped(void);

/* CPU time of this process, in ns. */
uint64_t run_cpu_ns(void);

/*
 * With --hold: report that n ports are open, and wait for the signal to go on. Then wait for their
 * peers. Senders call it between opening their ports and being ready.
 */
bool run_await(const struct options *options, struct io *const *ios, unsigned n,
	       struct io_error *error);

/* Report that the role is ready. `to` is the other port of a loop, or NULL. */
struct run run_begin(const struct options *options, struct io *io, struct io *to);

/* What a receiver with these options, which must outlive it, needs. NULL: no memory. */
struct tracker *run_tracker(const struct options *options);

/* Background work that is due at `now`. An error that it cannot repair ends the run. */
void run_service(struct run *run, uint64_t now);

/* When the current interval ends; UINT64_MAX if there are none. */
uint64_t run_interval_due(const struct run *run);

/*
 * Write the receiver's fields: in the line of an interval, the packets since the last one; or in
 * the result.
 */
void run_write_received_interval(struct run *run, struct json *j, struct tracker *tracker);
void run_write_received(struct run *run, struct json *j, const struct tracker *tracker);

struct json run_interval_begin(struct run *run, uint64_t now);
int run_interval_finish(struct run *run, struct json *j, uint64_t now);

struct json run_result_begin(struct run *run);

/* Write the port's link, if it has one. */
void run_write_link(const struct run *run, struct json *j);

/* Writes the end of the result, and returns the exit status. */
int run_result_end(struct run *run, struct json *j, bool clean);

/* Nothing lost, doubled, reordered, corrupt, stale, early, late or with wrong stamps. */
bool run_received_clean(const struct tracker *tracker);

int role_sink(const struct options *options, struct io *io);
int role_send(const struct options *options, struct io *io);
int role_ping(const struct options *options, struct io *io);

/* Opens its two ports itself. */
int role_loop(const struct options *options);

#endif
