/* SPDX-License-Identifier: Apache-2.0 */
/* dray-vnf: network functions on DPDK ports. */
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <rte_version.h>
#include <stdio.h>
#include <string.h>

#include "program.h"

enum { EXIT_DONE, EXIT_ERROR, EXIT_USAGE };

/* The index of "--"; argc if there is none. */
static int separator(int argc, char **argv)
{
	int i = 1;

	while (i < argc && strcmp(argv[i], "--") != 0)
		i++;
	return i;
}

static int make_counters(struct program *p)
{
	int lcores = loops_lcores(p);

	if (lcores < 0)
		return -1;
	p->lcores = (unsigned)lcores;
	p->counters =
		rte_zmalloc(NULL, p->lcores * sizeof(*p->counters), _Alignof(struct counters));
	if (p->counters)
		return 0;
	fputs("dray-vnf: no memory for counters: give EAL a larger -m\n", stderr);
	return -1;
}

static int run(struct program *p)
{
	int ret = -1;

	if (ports_find(p) < 0 || make_counters(p) < 0)
		return -1;
	if (ports_open(p) == 0 && options_function(&p->options, &p->function) == 0 &&
	    (p->options.mode != MODE_L3FWD || fib_open(p) == 0)) {
		p->report = (struct report){.out = stdout,
					    .mode = mode_name(p->options.mode),
					    .ports = p->ports,
					    .lcores = p->lcores,
					    .stages = p->options.stages,
					    .port = p->names,
					    .setup = p->function.port};
		if (p->options.mode == MODE_LB) {
			p->report.lb = &p->function.lb;
			links_open(p);
		}
		p->report.keep = p->function.keep;
		ret = control_start(p);
		if (ret == 0) {
			ret = loops_run(p);
			if (ret < 0)
				atomic_store(&p->stop, true);
			control_end(p);
		}
	}
	ports_close(p);
	fib_close(p);
	bng_close(&p->function.bng);
	gtpu_close(&p->function.gtpu);
	lb_close(&p->function.lb);
	keep_close(p->function.keep);
	return ret;
}

int main(int argc, char **argv)
{
	static struct program program;
	int at = separator(argc, argv), ret;

	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		/* The release of each November begins a new ABI, numbered after the year that
		 * follows. */
		printf("dray-vnf %s (%s, DPDK ABI %d)\n", DRAY_VNF_VERSION, DRAY_DATE,
		       RTE_VER_YEAR + (RTE_VER_MONTH >= 11));
		return EXIT_DONE;
	}
	if (argc == 2 && at == argc)
		at = 0; /* --help, without EAL */
	ret = options_read(argc - at - 1 > 0 ? argc - at - 1 : 0, argv + at + 1, &program.options);
	if (ret)
		return ret > 0 ? EXIT_DONE : EXIT_USAGE;
	if (at == 0) {
		fputs("dray-vnf: before the mode come EAL's arguments and --; see dray-vnf "
		      "--help\n",
		      stderr);
		return EXIT_USAGE;
	}
	control_block_signals();
	argv[at] = NULL;
	if (rte_eal_init(at, argv) < 0) {
		fprintf(stderr, "dray-vnf: EAL does not start: %s\n", rte_strerror(rte_errno));
		return EXIT_ERROR;
	}
	ret = run(&program);
	rte_free(program.counters);
	rte_eal_cleanup();
	return ret < 0 ? EXIT_ERROR : EXIT_DONE;
}
