/* SPDX-License-Identifier: Apache-2.0 */
/* The role "send". */
#include <errno.h>
#include <stdlib.h>

#include "clock.h"
#include "sender.h"

static void interval(struct sender *s, uint64_t now)
{
	struct json j = run_interval_begin(s->run, now);

	sender_write_interval(s, &j);
	(void)run_interval_finish(s->run, &j, now);
}

/* Sleep, or spin, until a burst or other work is due. */
static void wait_until(const struct options *o, uint64_t due)
{
	if (o->busy)
		clock_relax();
	else
		io_sleep(due);
}

static void send_all(struct sender *s)
{
	struct run *run = s->run;
	uint64_t now = clock_now();

	while (!run_stopped() && !run->error) {
		uint64_t due = sender_due(s, now), end = run_interval_due(run);

		if (due == UINT64_MAX)
			return;
		if (now >= end)
			interval(s, now);
		run_service(run, now);
		if (now < due) {
			wait_until(run->options, due < end ? due : end);
			now = clock_now();
		} else {
			run->error = sender_burst(s, &now);
		}
	}
}

int role_send(const struct options *o, struct io *io)
{
	struct run run = run_begin(o, io, NULL);
	struct sender *s = sender_new(&run);
	struct json j;
	int status;

	if (!s) {
		fputs("draygen: no memory\n", stderr);
		return EXIT_ERROR;
	}
	send_all(s);
	if (!run.error)
		sender_finish(s);
	j = run_result_begin(&run);
	sender_write(s, &j);
	run_write_link(&run, &j);
	status = run_result_end(&run, &j, s->unsent == 0 && s->errors == 0 && !run.error);
	free(s);
	return status;
}
