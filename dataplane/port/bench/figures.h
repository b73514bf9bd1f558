/* SPDX-License-Identifier: Apache-2.0 */
/* What was measured: names, samples, intervals, ratios; as tables and as JSON. */
#ifndef DRAY_BENCH_FIGURES_H
#define DRAY_BENCH_FIGURES_H

#include <stdint.h>

/*
 * A figure of a group, made when it is first named. Figures of a group and of one unit are each other's peers. `limit` is the name of what
 * it is a ratio to, of any group; NULL: nothing. Strings are kept, not copied.
 */
struct figure *figure(const char *group, const char *name, const char *unit, const char *limit);

/* One sample of a round. The value is the median of the samples, its interval the order statistics that hold it with 95 %. */
void figure_add(struct figure *figure, double sample);

/* The q-quantile of n values (0 to 1; they get sorted), with its 95 % interval by order statistics. Refused where n cannot support it. */
void figure_quantile(struct figure *figure, uint32_t *values, unsigned n, double q);

/* What holds for this figure: a target, a doubt. */
void figure_mark(struct figure *figure, const char *mark);

/* The figure could not be measured, and why. */
void figure_missing(struct figure *figure, const char *reason);

double figure_value(const struct figure *figure);

/* What holds for the whole run. */
void figures_mark(const char *mark);

/* The group has a table of its own: it goes to JSON only. */
void figures_hide(const char *group);

void figures_print(void);

/* 0 or -1 with errno. */
int figures_write(const char *path);

#endif
