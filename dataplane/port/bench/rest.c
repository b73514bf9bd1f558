/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions, adaptive mode, set-up, and the kill table. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench.h"
#include "figures.h"
#include "kill.h"
#include "modes.h"
#include "sections.h"

#define MAX_STAMPS 1000000u
#define WAKES 300u
#define STARVED 0.9 /* % of the time without a CPU: from there on the p99 may be the machine's */

static double instructions(const char *program, const char *show)
{
	char command[2 * PATH_MAX], line[256];
	double per_packet = 0;
	FILE *f;

	snprintf(command, sizeof(command), "%s %s 100000 %s", INSTRUCTIONS_SH, program, show);
	f = popen(command, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (per_packet == 0)
			per_packet = strtod(line, NULL);
		else
			printf("  %s", line);
	}
	if (f)
		pclose(f);
	return per_packet;
}

void section_instructions(void)
{
	static const char group[] = "instructions of a 64 B packet, both ends and the application";
	struct figure *with = figure(group, "libdray", "instructions", NULL);
	struct figure *without = figure(group, "libdray without checks and stamps", "instructions", NULL);
	struct figure *added = figure(group, "added by checks and stamps", "instructions", NULL);
	char self[PATH_MAX - 16], other[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	double a, b;

	fprintf(stderr, "instructions per packet, under callgrind\n");
	self[n < 0 ? 0 : n] = 0;
	snprintf(other, sizeof(other), "%s-unchecked", self);
	printf("where the instructions go, per packet (link_alone: the application):\n");
	a = instructions(self, "--where");
	b = access(other, X_OK) == 0 ? instructions(other, "") : 0;
	if (a > 0)
		figure_add(with, a);
	else
		figure_missing(with, "valgrind is missing");
	if (a > 0 && b > 0) {
		figure_add(without, b);
		figure_add(added, a - b);
		return;
	}
	figure_missing(without, "valgrind, or the program built without checks, is missing");
	figure_missing(added, "valgrind, or the program built without checks, is missing");
}

void section_adaptive(const struct profile *profile)
{
	static const struct {
		unsigned pps;
		const char *cpu, *p99, *starved;
	} loads[] = {{0, "CPU of the receiver, idle", NULL, NULL},
		     {1000, "CPU of the receiver, 1 k packets/s", "one-way p99, 1 k packets/s", "receiver ready, but without a CPU, 1 k packets/s"},
		     {10000, "CPU of the receiver, 10 k packets/s", "one-way p99, 10 k packets/s", "receiver ready, but without a CPU, 10 k packets/s"},
		     {100000, "CPU of the receiver, 100 k packets/s", "one-way p99, 100 k packets/s", "receiver ready, but without a CPU, 100 k packets/s"},
		     {1000000, "CPU of the receiver, 1 M packets/s", "one-way p99, 1 M packets/s", "receiver ready, but without a CPU, 1 M packets/s"}};
	static const char group[] = "adaptive mode, 50 us of polling before sleep";
	struct broker_options small = bench_shape(1500);
	struct link link = link_open(&small, DRAY_MODE_ADAPTIVE);
	uint32_t *ns = calloc(MAX_STAMPS, sizeof(*ns));

	for (unsigned i = 0; ns && i < sizeof(loads) / sizeof(loads[0]); i++) {
		double cpu, starved;
		unsigned n;

		fprintf(stderr, "adaptive mode: %u packets/s\n", loads[i].pps);
		n = adaptive_load(&link, loads[i].pps, profile->quick ? 500 : 2000, &cpu, &starved, ns, MAX_STAMPS);
		figure_add(figure(group, loads[i].cpu, "% of a core", NULL), cpu);
		if (loads[i].p99) {
			figure_quantile(figure(group, loads[i].p99, "ns", NULL), ns, n, 0.99);
			figure_add(figure(group, loads[i].starved, "% of the time", NULL), starved);
			if (starved > STARVED)
				figure_mark(figure(group, loads[i].p99, "", NULL), "the receiver was starved of CPU");
		} else {
			figure_mark(figure(group, loads[i].cpu, "", NULL), cpu < 1 ? "target 1: reached" : "target 1: NOT reached");
		}
	}
	if (ns) {
		first_futex(ns, WAKES);
		figure_quantile(figure(group, "first packet after idle: bare futex wake-up, p50", "ns", NULL), ns, WAKES, 0.5);
		first_socket(ns, WAKES);
		figure_quantile(figure(group, "first packet after idle: UNIX datagram socket, p50", "ns", NULL), ns, WAKES, 0.5);
		first_packets(&link, ns, WAKES);
		figure_quantile(figure(group, "first packet after idle: libdray, p50", "ns",
				       "first packet after idle: UNIX datagram socket, p50"), ns, WAKES, 0.5);
	}
	free(ns);
	link_close(&link);
}

void section_set_up(const struct profile *profile)
{
	static const char group[] = "set-up: from dray_open to the first packet; the broker of the C tests";
	struct broker_options small = bench_shape(1500);
	unsigned n = profile->quick ? 100 : 500;
	uint32_t ns[500];

	fprintf(stderr, "set-up of %u links\n", n);
	set_ups(&small, ns, n);
	figure_quantile(figure(group, "p50", "ns", NULL), ns, n, 0.5);
	figure_quantile(figure(group, "p99", "ns", NULL), ns, n, 0.99);
}

/* A row of the kill table: the table itself is one line each, the figures go to JSON. */
static void kill_row(const char *group, struct kills *k)
{
	double p50 = bench_quantile(k->recovery, k->rounds, 0.5), p99 = bench_quantile(k->recovery, k->rounds, 0.99);
	const char *good = "target 0: reached", *bad = "target 0: NOT reached";

	printf("  %-40s %6u %10.0f %10.0f %8llu %8llu %8llu %12.1f %12.1f\n", group, k->rounds, p50 / 1e3, p99 / 1e3, (unsigned long long)k->lost,
	       (unsigned long long)k->leaked, (unsigned long long)k->stalls, (double)k->longest / 1e6, (double)k->starved / 1e6);
	fflush(stdout);
	figure_quantile(figure(group, "recovery p50", "ns", NULL), k->recovery, k->rounds, 0.5);
	figure_quantile(figure(group, "recovery p99", "ns", NULL), k->recovery, k->rounds, 0.99);
	figure_mark(figure(group, "recovery p50", "", NULL), "more processes than cores");
	figure_mark(figure(group, "recovery p99", "", NULL), "more processes than cores");
	figure_add(figure(group, "packets published by the dead", "packets", NULL), (double)k->packets);
	figure_add(figure(group, "published and not received", "packets", NULL), (double)k->lost);
	figure_mark(figure(group, "published and not received", "", NULL), k->lost ? bad : good);
	figure_add(figure(group, "buffers and generations leaked", "buffers", NULL), (double)k->leaked);
	figure_mark(figure(group, "buffers and generations leaked", "", NULL), k->leaked ? bad : good);
	figure_add(figure(group, "stalls of the survivor, over 1 s", "calls", NULL), (double)k->stalls);
	figure_mark(figure(group, "stalls of the survivor, over 1 s", "", NULL), k->stalls ? bad : good);
	figure_add(figure(group, "longest call of the survivor", "ns", NULL), (double)k->longest);
	figure_add(figure(group, "of it ready, but without a CPU", "ns", NULL), (double)k->starved);
	figures_hide(group);
}

/* Returns what was lost and leaked. */
static uint64_t run_kills(const char *group, unsigned rounds, void (*kill)(struct kills *), unsigned step)
{
	struct kills k = {.rounds = rounds, .recovery = calloc(rounds, sizeof(uint32_t))};

	if (!k.recovery)
		exit(1);
	if (kill)
		kill(&k);
	else
		kill_in_handshake(&k, step);
	kill_row(group, &k);
	free(k.recovery);
	return k.lost + k.leaked;
}

int section_kills(const struct profile *profile)
{
	uint64_t broken;
	static char names[HANDSHAKE_STEPS][64];
	unsigned each = (profile->kills + HANDSHAKE_STEPS - 1) / HANDSHAKE_STEPS, few = (profile->kills + 9) / 10;

	fprintf(stderr, "kill -9: %u times under load, %u without a broker, %u in the handshake\n", profile->kills, few,
		each * HANDSHAKE_STEPS);
	printf("\nkill table (survivor, victim, successor and broker share the cores)\n  %-40s %6s %10s %10s %8s %8s %8s %12s %12s\n", "one end dies",
	       "times", "p50, us", "p99, us", "lost", "leaked", "stalls", "longest, ms", "no CPU, ms");
	broken = run_kills("kill -9 under full load", profile->kills, kill_under_load, 0);
	broken += run_kills("kill -9 under full load, broker dead", few, kill_without_broker, 0);
	for (unsigned i = 0; i < HANDSHAKE_STEPS; i++) {
		snprintf(names[i], sizeof(names[i]), "kill -9 in set-up: %s", handshake_step(i));
		broken += run_kills(names[i], each, NULL, i);
	}
	printf("\n");
	return broken ? -1 : 0;
}
