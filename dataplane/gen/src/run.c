/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that the roles share. */
#include "run.h"

#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "clock.h"

#define SERVICE_NS (20 * NS_PER_MS)

static volatile sig_atomic_t stopped;

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
}

void run_catch_signals(void)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* the default lengthens each sleep by 50 us */
	(void)prctl(PR_SET_TIMERSLACK, 1UL, 0, 0, 0);
}

bool run_stopped(void)
{
	return stopped;
}

uint64_t run_cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * NS_PER_SECOND + (uint64_t)t.tv_nsec;
}

bool run_await(const struct options *o, struct io *const *ios, unsigned n, struct io_error *error)
{
	struct json j;

	if (o->hold) {
		j = json_begin(stdout, "open", options_role(o->role), ios[0]->name);
		json_u64(&j, "pid", (uint64_t)getpid());
		(void)json_end(&j);
		if (!io_hold(ios, n, error))
			return false;
	}
	return io_await_peers(ios, n, o, error);
}

static struct json line_begin(const struct run *run, const char *event)
{
	struct json j = json_begin(stdout, event, options_role(run->options->role), run->io->name);

	if (run->to)
		json_string(&j, "to_port", run->to->name);
	return j;
}

/* This thread is the only one that handles packets. At `max` it never waits. */
static unsigned polling_threads(const struct options *o, const struct io *io, const struct io *to)
{
	bool polls = io->polls || (to && to->polls);

	return o->busy || (polls && (io_receives(o) || o->rate.per_second == 0)) || (to && o->both);
}

struct run run_begin(const struct options *o, struct io *io, struct io *to)
{
	struct run run = {.options = o, .io = io, .to = to};
	struct json j = line_begin(&run, "ready");

	json_u64(&j, "pid", (uint64_t)getpid());
	(void)json_end(&j); /* a write error is noticed at the result */
	run.cpus = cpus_begin(polling_threads(o, io, to), o->beside);
	run.started_cpu_ns = run_cpu_ns();
	run.started_ns = run.interval_began_ns = clock_now();
	return run;
}

struct tracker *run_tracker(const struct options *o)
{
	struct tracker *t = tracker_new(o->stream);

	if (t) {
		t->check = o->check;
		t->intervals = o->interval_ns != 0;
		t->windows.fronthaul = o->fronthaul.scs ? &o->fronthaul : NULL;
		t->windows.fapi = o->fapi.scs ? &o->fapi : NULL;
	}
	return t;
}

void run_service(struct run *run, uint64_t now)
{
	if (run->io->ops->service && now - run->serviced_ns >= SERVICE_NS) {
		int ret = run->io->ops->service(run->io);

		run->serviced_ns = now;
		if (ret < 0 && !run->error)
			run->error = ret;
	}
}

uint64_t run_interval_due(const struct run *run)
{
	return run->options->interval_ns ? run->interval_began_ns + run->options->interval_ns
					 : UINT64_MAX;
}

static uint64_t drops(const struct run *run)
{
	return run->io->ops->drops ? run->io->ops->drops(run->io) : 0;
}

void run_write_received_interval(struct run *run, struct json *j, struct tracker *t)
{
	const struct tracker_counts *now = &t->counts, *then = &run->last;
	uint64_t expected = tracker_expected(t), dropped = drops(run);

	json_u64(j, "received", now->received - then->received);
	json_u64(j, "bytes", now->received_bytes - then->received_bytes);
	json_i64(j, "lost",
		 (int64_t)(expected - run->last_expected) -
			 (int64_t)(now->received - then->received));
	json_u64(j, "duplicates", now->duplicates - then->duplicates);
	json_u64(j, "reordered", now->reordered - then->reordered);
	json_u64(j, "corrupt", now->corrupt - then->corrupt);
	json_u64(j, "foreign", now->foreign - then->foreign);
	json_u64(j, "socket_drops", dropped - run->last_drops);
	json_histogram(j, t->replies ? "round_trip" : "one_way", &t->delay_interval, false);
	histogram_clear(&t->delay_interval);
	run->last = *now;
	run->last_expected = expected;
	run->last_drops = dropped;
}

static void write_counts(struct run *run, struct json *j, const struct tracker *t)
{
	const struct tracker_counts *c = &t->counts;
	uint64_t expected = tracker_expected(t);

	if (!t->replies)
		json_u64(j, "stream", t->stream);
	json_bool(j, "end_seen", t->end_seen);
	json_u64(j, "first_ns", t->first_ns);
	json_u64(j, "last_ns", t->last_ns);
	json_u64(j, "expected", expected);
	json_u64(j, "received", c->received);
	json_u64(j, "received_bytes", c->received_bytes);
	json_u64(j, "lost", expected - c->received);
	json_u64(j, "duplicates", c->duplicates);
	json_u64(j, "reordered", c->reordered);
	json_u64(j, "reordered_distance_max", t->reordered_distance_max);
	json_u64(j, "stale", c->stale);
	json_u64(j, t->replies ? "warmup_received" : "warmup", c->warmup);
	json_u64(j, "foreign", c->foreign);
	json_u64(j, "corrupt", c->corrupt);
	json_u64(j, "other_stream", c->other_stream);
	json_u64(j, "socket_drops", drops(run));
	json_u64(j, "clock_errors", c->clock_errors);
}

/* n packets of so many bytes, the first and last of which came so many ns apart. */
static void write_rates(struct json *j, uint64_t n, uint64_t bytes, uint64_t ns)
{
	double seconds = (double)ns / (double)NS_PER_SECOND,
	       pps = n > 1 && seconds > 0 ? (double)(n - 1) / seconds : 0;

	json_double(j, "receive_pps", pps);
	json_double(j, "receive_bps", n ? pps * 8 * (double)bytes / (double)n : 0);
}

static void write_bulk(struct json *j, const struct tracker *t)
{
	if (!t->has_bulk)
		return;
	json_open(j, "bulk");
	json_u64(j, "received", t->bulk_received);
	json_u64(j, "received_bytes", t->bulk_bytes);
	write_rates(j, t->bulk_received, t->bulk_bytes, t->bulk_last_ns - t->bulk_first_ns);
	json_close(j);
}

void run_write_received(struct run *run, struct json *j, const struct tracker *t)
{
	write_counts(run, j, t);
	write_rates(j, t->counts.received, t->counts.received_bytes, t->last_ns - t->first_ns);
	write_bulk(j, t);
	json_histogram(j, t->replies ? "round_trip" : "one_way", &t->delay, true);
	json_histogram(j, t->replies ? "round_trip_intended" : "one_way_intended",
		       &t->delay_intended, true);
	if (t->replies) {
		json_histogram(j, "forward", &t->forward, true);
		json_histogram(j, "back", &t->back, true);
	}
	json_variation(j, "pdv", &t->delay);
	json_histogram(j, "ipdv", &t->variation, true);
	json_double(j, "jitter_ns", tracker_jitter(t));
	json_double(j, "jitter_max_ns", t->jitter_max_ns);
	if (windows_exist(&t->windows))
		windows_write(&t->windows, j);
}

bool run_received_clean(const struct tracker *t)
{
	const struct tracker_counts *c = &t->counts;

	return tracker_expected(t) == c->received &&
	       !(c->duplicates | c->reordered | c->corrupt | c->stale | c->clock_errors |
		 windows_missed(&t->windows));
}

struct json run_interval_begin(struct run *run, uint64_t now)
{
	struct json j = line_begin(run, "interval");

	json_u64(&j, "interval", run->interval);
	json_u64(&j, "from_ns", run->interval_began_ns);
	json_u64(&j, "to_ns", now);
	return j;
}

int run_interval_finish(struct run *run, struct json *j, uint64_t now)
{
	run->interval++;
	/* On a grid, but without empty lines after a stall. */
	do
		run->interval_began_ns += run->options->interval_ns;
	while (run_interval_due(run) <= now);
	return json_end(j);
}

struct json run_result_begin(struct run *run)
{
	return line_begin(run, "result");
}

void run_write_link(const struct run *run, struct json *j)
{
	struct io_link link = {0};

	if (!run->io->ops->link)
		return;
	run->io->ops->link(run->io, &link);
	json_open(j, "link");
	json_string(j, "kind", link.kind);
	json_u64(j, "generation", link.generation);
	if (link.judges)
		json_u64(j, "violations", link.violations);
	json_close(j);
}

int run_result_end(struct run *run, struct json *j, bool clean)
{
	json_bool(j, "clean", clean);
	cpus_write(&run->cpus, j);
	json_u64(j, "cpu_ns", run_cpu_ns() - run->started_cpu_ns);
	json_u64(j, "wall_ns", clock_now() - run->started_ns);
	if (json_end(j) < 0) {
		fputs("draygen: the result could not be written to standard output\n", stderr);
		return EXIT_ERROR;
	}
	if (run->error) {
		fprintf(stderr, "draygen: %s: %s\n", (run->failed ? run->failed : run->io)->name,
			strerror(-run->error));
		return EXIT_ERROR;
	}
	return run->options->strict && !clean ? EXIT_NOT_CLEAN : EXIT_DONE;
}
