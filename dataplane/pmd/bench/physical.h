/* SPDX-License-Identifier: Apache-2.0 */
/* What is beneath all rows: the physical limit of the moment, and libdray without DPDK or a generator. */
#ifndef PMD_BENCH_PHYSICAL_H
#define PMD_BENCH_PHYSICAL_H

#include "pairs.h"

/* Names of figures, to which others are ratios. */
extern const char physical_ring[], physical_line[];

/* `bare`: dray-bench, beside which dray-limit is; NULL: none. The figure of libdray is of `group`. */
void physical_start(const struct place *place, const char *bare, const char *group);

void physical_measure(void);

/* Of libdray: a function that makes headers and one that reads them. */
struct figure *physical_libdray(void);

struct figure *physical_line_figure(void);

void physical_end(void);

#endif
