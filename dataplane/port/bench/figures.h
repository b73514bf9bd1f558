/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured: names, samples, intervals, ratios; as tables and as JSON. */
#ifndef DRAY_BENCH_FIGURES_H
#define DRAY_BENCH_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A figure of a group, made when it is first named. Figures of a group and of one unit are each other's peers. `limit` is the name of what
 * it is a ratio to, of any group; NULL: nothing. Strings are kept, not copied.
 */
struct figure *figure(const char *group, const char *name, const char *unit, const char *limit);

/* One sample of a round. The value is the median of the samples, its interval the order statistics that hold it with 95 %; of fewer than six, all of them. */
void figure_add(struct figure *figure, double sample);

/* The q-quantile of n values (0 to 1; they get sorted), with its 95 % interval by order statistics. Refused where n cannot support it. */
void figure_quantile(struct figure *figure, uint32_t *values, unsigned n, double q);

/* Forget all samples of each figure but the first n: those of a round that was not finished. */
void figures_keep(unsigned n);

/* What holds for this figure: a target, a doubt. */
void figure_mark(struct figure *figure, const char *mark);

/*
 * What the figure should be of another one, which may be NULL: then there was none. `what` says it in words. Judged by the ratio of the values; where its
 * interval has the target in it, that is said. At most two for a figure.
 */
void figure_target(struct figure *figure, const struct figure *of, const char *what, double target, bool at_most);

/* Whether all its targets that could be measured were reached. */
bool figure_reached(const struct figure *figure);

/* What limits a figure that misses its target: printed with it. Copied. */
void figure_limited(struct figure *figure, const char *by);

/* The figure could not be measured, and why. */
void figure_missing(struct figure *figure, const char *reason);

double figure_value(const struct figure *figure);

/* It has a value, and nothing has kept it from being measured since: else the value is what was left of it. */
bool figure_measured(const struct figure *figure);

/* What holds for the whole run. */
void figures_mark(const char *mark);

/* Mark what is doubtful about this machine at this moment; takes a second. Before the threads are pinned, and before they are the load. */
void figures_look_at_machine(unsigned busy_threads);

/* The group has a table of its own: it goes to JSON only. */
void figures_hide(const char *group);

void figures_print(void);

/* All targets, a line each. */
void figures_print_targets(void);

/* 0 or -1 with errno. */
int figures_write(const char *path);

#endif
