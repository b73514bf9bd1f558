/* SPDX-License-Identifier: Apache-2.0 */
/* Links and streams for tests. */
#ifndef DRAY_IQ_RIG_H
#define DRAY_IQ_RIG_H

#include "dray_iq.h"
#include "test.h"

#define MESSAGE 4096u /* bytes of a message */
#define MESSAGES 4u   /* in each direction */

/* A link with messages, on a broker that is a child, or a thread. */
struct broker *rig_fork(void);
struct broker *rig_start(void);

struct dray_iq *rig_open(struct broker *broker, const char *port, enum dray_iq_direction direction);
struct dray_iq_stats rig_stats(struct dray_iq *stream);

/* A child that runs `work` until it is killed, and dies with this process. */
pid_t rig_child(void (*work)(void *), void *argument);
void rig_kill(pid_t child);

/* CPU time of this process, in ns. */
uint64_t rig_cpu_ns(void);

#endif
