/* SPDX-License-Identifier: Apache-2.0 */
/* Links and streams for tests. */
#include "rig.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

static const struct broker_options options = {
	.geometry = {.msg_slots = MESSAGES, .msg_stride = MESSAGE + 128, .msg_headroom = 128}};

struct broker *rig_fork(void)
{
	return broker_fork(&options);
}

struct broker *rig_start(void)
{
	return broker_start(&options);
}

struct dray_iq *rig_open(struct broker *broker, const char *port, enum dray_iq_direction direction)
{
	struct dray_iq_options o = {.size = sizeof(o), .directory = broker_directory(broker)};
	struct dray_iq *stream = NULL;
	int ret;

	/* the broker may still have the port of a killed process */
	UNTIL((ret = dray_iq_open(port, direction, &o, &stream)) != -EBUSY, usleep(1000));
	CHECK_EQ(ret, 0);
	return stream;
}

struct dray_iq_stats rig_stats(struct dray_iq *stream)
{
	struct dray_iq_stats stats = {.size = sizeof(stats)};

	CHECK_EQ(dray_iq_stats(stream, &stats), 0);
	return stats;
}

pid_t rig_child(void (*work)(void *), void *argument)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		work(argument);
		_exit(0);
	}
	return pid;
}

void rig_kill(pid_t child)
{
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, NULL, 0), child);
}

uint64_t rig_cpu_ns(void)
{
	struct timespec t;

	CHECK_EQ(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
