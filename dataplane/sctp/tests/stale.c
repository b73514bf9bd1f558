/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pump tells a listener what accept can take, and nothing that accept took since it looked.
 * This file is linked with --wrap=usrsctp_get_events.
 */
#include "../src/pump.c"

#include "check.h"

static int left; /* looks that find an association; then accept has taken it */

int __wrap_usrsctp_get_events(struct socket *so);

int __wrap_usrsctp_get_events(struct socket *so)
{
	(void)so;
	return left-- > 0 ? SCTP_EVENT_READ : 0;
}

void test_failed(void)
{
	_exit(1);
}

/* Whether a listener is readable after a visit with so many looks that find something. */
static bool readable(int looks)
{
	struct sock listener = {
		.style = SOCK_STREAM, .listening = true, .lock = PTHREAD_MUTEX_INITIALIZER};
	struct pollfd application = {.events = POLLIN};
	int ends[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
	listener.lib = ends[0];
	application.fd = ends[1];
	left = looks;
	serve(&listener, false);
	CHECK_EQ(poll(&application, 1, 0), listener.token);
	close(ends[0]);
	close(ends[1]);
	return listener.token;
}

int main(void)
{
	CHECK(readable(INT32_MAX));
	CHECK(!readable(1));
	return 0;
}
