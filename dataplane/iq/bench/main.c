/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Subframes of I/Q samples from one buffer to another, each end in a process of its own. For each line of stdin, `ROUND OVER BYTES RATE COUNT`, it
 * sends COUNT subframes over dray, zmq-ipc or zmq-tcp, RATE a second or (0) as fast as they go, and prints a line of JSON. Its values are subframes
 * per second, CPU time of both ends in us a subframe, and p50 and p99 of the one-way latency in us.
 */
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "over.h"
#include "test.h"

#define MOST 100000u
#define SLOTS 64u
#define MESSAGE (256u << 10)

/* What the ends report. A tenth of the subframes comes first, and is not measured. */
struct shared {
	uint64_t first_ns, last_ns, cpu_ns[2];
	uint32_t latency_ns[MOST];
};

struct job {
	const struct over *over;
	const char *where;
	size_t bytes;
	double rate;
	unsigned count;
	struct shared *shared;
};

static uint64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void sleep_until(uint64_t ns)
{
	struct timespec t = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL))
		;
}

/* When the subframe is there to be sent: after the pacer's sleep, but when it was due if the one before took longer. */
static uint64_t pace(const struct job *j, uint64_t start, unsigned n)
{
	uint64_t due, now = clock_ns();

	if (j->rate == 0)
		return now;
	due = start + (uint64_t)(n * 1e9 / j->rate);
	if (now >= due)
		return due;
	sleep_until(due);
	return clock_ns();
}

static void *buffer_new(size_t bytes)
{
	void *buffer = aligned_alloc(64, (bytes + 63) & ~(size_t)63);

	must(buffer != NULL, "no memory");
	memset(buffer, 1, bytes);
	return buffer;
}

static void send_all(const struct job *j)
{
	unsigned warm_up = j->count / 10;
	uint64_t *buffer = buffer_new(j->bytes), start, cpu = 0;
	void *end = j->over->open(true, j->where);

	*buffer = clock_ns();
	j->over->send(end, buffer, j->bytes); /* waits for the receiver */
	start = clock_ns();
	for (unsigned n = 1; n < warm_up + j->count; n++) {
		if (n == warm_up)
			cpu = cpu_ns();
		*buffer = pace(j, start, n);
		j->over->send(end, buffer, j->bytes);
	}
	j->shared->cpu_ns[0] = cpu_ns() - cpu;
	j->over->close(end);
}

static void receive_all(const struct job *j)
{
	unsigned warm_up = j->count / 10;
	uint64_t *buffer = buffer_new(j->bytes), cpu = 0;
	void *end = j->over->open(false, j->where);

	for (unsigned n = 0; n < warm_up + j->count; n++) {
		uint64_t now;

		if (n == warm_up)
			cpu = cpu_ns();
		j->over->receive(end, buffer, j->bytes);
		now = clock_ns();
		if (n == warm_up)
			j->shared->first_ns = now;
		if (n >= warm_up)
			j->shared->latency_ns[n - warm_up] = (uint32_t)(now - *buffer);
		j->shared->last_ns = now;
	}
	j->shared->cpu_ns[1] = cpu_ns() - cpu;
	j->over->close(end);
}

static pid_t start(const struct job *j, bool sends)
{
	pid_t child = fork();

	must(child >= 0, "fork failed");
	if (child > 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (j->over->network && !sends)
		network_enter_peer();
	(sends ? send_all : receive_all)(j);
	_exit(0);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void print(const struct job *j, unsigned round)
{
	struct shared *s = j->shared;

	qsort(s->latency_ns, j->count, sizeof(s->latency_ns[0]), compare);
	printf("{\"case\": \"%s %zu\", \"round\": %u, \"unit\": \"\", \"values\": [%.1f, %.3f, %.3f, %.3f]}\n", j->over->name, j->bytes, round,
	       (j->count - 1) * 1e9 / (double)(s->last_ns - s->first_ns), (double)(s->cpu_ns[0] + s->cpu_ns[1]) / 1e3 / j->count,
	       s->latency_ns[j->count / 2] / 1e3, s->latency_ns[j->count * 99ull / 100] / 1e3);
	fflush(stdout);
}

static void measure(const struct job *j, unsigned round)
{
	pid_t ends[2] = {start(j, true), start(j, false)};

	for (unsigned i = 0; i < 2; i++) {
		int status;

		must(waitpid(ends[i], &status, 0) == ends[i] && status == 0, "an end has failed");
	}
	print(j, round);
}

static const struct over *find(const char *name)
{
	static const struct over *const all[] = {&over_dray, &over_zmq_ipc, &over_zmq_tcp};

	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		if (strcmp(all[i]->name, name) == 0)
			return all[i];
	return NULL;
}

int main(void)
{
	const struct broker_options options = {.geometry = {.msg_slots = SLOTS, .msg_stride = MESSAGE + 128, .msg_headroom = 128}};
	struct broker *broker = broker_fork(&options);
	struct job j = {.where = broker_directory(broker)};
	char name[16];
	unsigned round;

	network_make();
	j.shared = mmap(NULL, sizeof(*j.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(j.shared != MAP_FAILED, "no memory");
	while (scanf("%u %15s %zu %lf %u", &round, name, &j.bytes, &j.rate, &j.count) == 5) {
		j.over = find(name);
		must(j.over && j.bytes >= 8 && j.count >= 10 && j.count <= MOST, "a line is not ROUND OVER BYTES RATE COUNT");
		measure(&j, round);
	}
	broker_stop(broker);
	return 0;
}
