/* SPDX-License-Identifier: Apache-2.0 */
/* dray-pmd-bench: net_dray beside DPDK's own ways between two applications, in turns, as ratios. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock.h"
#include "figures.h"
#include "rows.h"

/* For what a round, or looking for what limits, takes longer than was thought. */
#define GRACE_S 20

/* For the container to end, when a signal does. */
#define INTERRUPTED_S 10

static struct place place;
static pid_t self; /* the brokers, which are forked, have the handler too */

/* How long all of it may take, in seconds, and of how many rounds more is of no use. */
struct profile {
	double seconds, window;
	unsigned rounds;
	bool quick;
};

/* What was started dies with this process; a container is told to, since it would leave something of runc's. */
static void interrupted(int number)
{
	if (getpid() != self)
		_exit(128 + number);
	signal(SIGALRM, SIG_DFL); /* what was interrupted may hold a lock that is waited for here */
	alarm(INTERRUPTED_S);
	rows_interrupted();
	place_end(&place);
	_exit(128 + number);
}

/* Rounds as long as there is time for another, but at least one. One that time ran out for is forgotten, since the ratios are those of rounds. */
static void measure(const struct profile *profile, uint64_t began)
{
	uint64_t end = began + (uint64_t)(profile->seconds * 1e9), last = 0;

	for (unsigned i = 0; i < profile->rounds && (i == 0 || clock_ns() + last < end); i++) {
		uint64_t now = clock_ns();

		fprintf(stderr, "\rnet_dray beside memif, vhost-user, switches and the null device: round %u of at most %u ", i + 1, profile->rounds);
		if (!rows_measure(i)) {
			if (i)
				figures_keep(i);
			figures_mark("too little time: the machine is slow, or busy");
			break;
		}
		last = clock_ns() - now;
	}
	fputc('\n', stderr);
}

static int usage(void)
{
	fprintf(stderr, "usage: dray-pmd-bench --driver FILE [--generator FILE] [--vnf FILE] [--bare FILE] [--quick] [--seconds N] [--json FILE]\n"
			"  --driver FILE     librte_net_dray.so\n"
			"  --generator FILE  draygen-dpdk, for round trips, native ports and switches; without it they are left out\n"
			"  --vnf FILE        dray-vnf, for l2fwd; without it that is left out\n"
			"  --bare FILE       dray-bench, for libdray without a generator; without it that is left out\n"
			"  --quick           fewer and shorter trials, in at most a minute and a half: a look, not a measurement; else five minutes\n"
			"  --seconds N       begin no round that would end later than that (240, with --quick 60)\n"
			"  --json FILE       write the figures there\n"
			"exit: 0 done, 1 error, 2 usage\n");
	return 2;
}

static const char *program(const char *path)
{
	return access(path, X_OK) == 0 ? realpath(path, NULL) : NULL;
}

/* The scripts are beside the sources. */
static int run(const struct profile *profile, const char *bare, const char *json)
{
	uint64_t began = clock_ns();

	figures_look_at_machine(2);
	place.seconds = profile->window;
	place.scripts = PMD_BENCH_SCRIPTS;
	place.end_ns = began + (uint64_t)((profile->seconds + GRACE_S) * 1e9);
	place_begin(&place);
	self = getpid();
	signal(SIGINT, interrupted);
	signal(SIGTERM, interrupted);
	signal(SIGPIPE, SIG_IGN);
	rows_start(&place, bare);
	measure(profile, began);
	rows_judge(!profile->quick);
	rows_end();
	place_end(&place);
	figures_print();
	figures_print_targets();
	if (json && figures_write(json) < 0) {
		perror(json);
		return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	static const struct option options[] = {{"driver", required_argument, NULL, 'd'}, {"generator", required_argument, NULL, 'g'},
						{"vnf", required_argument, NULL, 'v'},	  {"bare", required_argument, NULL, 'b'},
						{"quick", no_argument, NULL, 'q'},	  {"json", required_argument, NULL, 'j'},
						{"seconds", required_argument, NULL, 's'}, {0}};
	const struct profile quick = {.seconds = 60, .window = 0.2, .rounds = 5, .quick = true};
	struct profile profile = {.seconds = 240, .window = 0.4, .rounds = 11};
	double seconds = 0;
	const char *json = NULL, *bare = NULL;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		if (c == 'd')
			place.driver = realpath(optarg, NULL);
		else if (c == 'g')
			place.generator = program(optarg);
		else if (c == 'v')
			place.vnf = program(optarg);
		else if (c == 'b')
			bare = program(optarg);
		else if (c == 'q')
			profile = quick;
		else if (c == 's')
			seconds = strtod(optarg, NULL);
		else if (c == 'j')
			json = optarg;
		else
			return usage();
	}
	if (optind != argc || !place.driver)
		return usage();
	if (seconds > 0)
		profile.seconds = seconds;
	return run(&profile, bare, json);
}
