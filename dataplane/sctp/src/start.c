/* SPDX-License-Identifier: Apache-2.0 */
/* The environment, usrsctp's settings, fork and exit. */
#include "start.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <usrsctp.h>

#include "pump.h"
#include "real.h"
#include "sock.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int state = -EPROTONOSUPPORT; /* what start() returns */
static bool running, in_child;
static unsigned udp_port;
static bool verbose;

/*
 * What usrsctp's library for programs refers to: it is compiled for programs, which get a copy of
 * libc's variable, and so a shared library needs one of its own.
 */
const struct in6_addr in6addr_any = IN6ADDR_ANY_INIT;

static void say(const char *format, va_list arguments)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "libdray_sctp: ");

	n += vsnprintf(line + n, sizeof(line) - (size_t)n, format, arguments);
	if (n >= (int)sizeof(line))
		n = sizeof(line) - 1;
	if (line[n - 1] != '\n' && n + 1 < (int)sizeof(line))
		line[n++] = '\n';
	if (REAL(write)(STDERR_FILENO, line, (size_t)n) < 0)
		return; /* there is nobody to tell */
}

void debug(const char *format, ...)
{
	va_list arguments;

	if (!verbose)
		return;
	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
}

__attribute__((format(printf, 2, 3))) static int refuse(int error, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	say(format, arguments);
	va_end(arguments);
	return -error;
}

unsigned start_udp_port(void)
{
	return udp_port;
}

/* The UDP port, 0 if none is asked for, or -errno. */
static int read_port(void)
{
	const char *text = getenv("DRAY_SCTP_UDP");
	char *end;
	long port;

	if (!text || !*text)
		return 0;
	port = strtol(text, &end, 10);
	if (*end || port < 1 || port > 65535)
		return refuse(EINVAL, "DRAY_SCTP_UDP is '%s', not a port from 1 to 65535", text);
	return (int)port;
}

/* usrsctp says nothing when it cannot open its sockets, so look first. */
static int look_udp(unsigned port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	int fd = REAL(socket)(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), result = 1;

	if (fd < 0)
		return -errno;
	if (REAL(bind)(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
		result = refuse(errno,
				"cannot bind UDP port %u (DRAY_SCTP_UDP): %s; only one program of "
				"a network namespace can have it",
				port, strerror(errno));
	REAL(close)(fd);
	return result;
}

static int look_raw(void)
{
	int fd = REAL(socket)(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, IPPROTO_SCTP);

	if (fd >= 0) {
		REAL(close)(fd);
		debug("the kernel has SCTP: its sockets are used");
		return 0;
	}
	fd = REAL(socket)(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_SCTP);
	if (fd < 0)
		return refuse(EPROTONOSUPPORT,
			      "cannot send SCTP packets: %s; they need CAP_NET_RAW; without it set "
			      "DRAY_SCTP_UDP=9899 (in a chain file: sctp: udp) at both ends",
			      strerror(errno));
	REAL(close)(fd);
	return 1;
}

/* Features that need more than this library has are off, and so are what attackers try first. */
static void settings(void)
{
	usrsctp_sysctl_set_sctp_ecn_enable(0); /* no access to the bits of IP's header */
	usrsctp_sysctl_set_sctp_auto_asconf(0);
	usrsctp_sysctl_set_sctp_asconf_enable(0);
	usrsctp_sysctl_set_sctp_auth_enable(0);
	usrsctp_sysctl_set_sctp_reconfig_enable(0);
	usrsctp_sysctl_set_sctp_nrsack_enable(0);
	usrsctp_sysctl_set_sctp_pktdrop_enable(0);
	usrsctp_sysctl_set_sctp_no_csum_on_loopback(0); /* captures show them */
	/*
	 * Each program with a raw socket sees the packets of all programs of its network namespace.
	 * If it answered those of unknown associations with ABORT, it would end the others'.
	 */
	if (!udp_port)
		usrsctp_sysctl_set_sctp_blackhole(2);
}

static void before_fork(void)
{
	sock_before_fork();
	pump_before_fork();
}

static void after_fork_parent(void)
{
	pump_after_fork();
	sock_after_fork(false);
}

/* The child has none of usrsctp's threads: its copies of the sockets are dead. */
static void after_fork_child(void)
{
	in_child = true;
	pump_after_fork();
	sock_after_fork(true);
}

static void run(void)
{
	sigset_t all, old;
	int port = read_port();

	verbose = getenv("DRAY_SCTP_DEBUG") && !strcmp(getenv("DRAY_SCTP_DEBUG"), "1");
	udp_port = port > 0 ? (unsigned)port : 0;
	state = port < 0 ? port : port ? look_udp(udp_port) : look_raw();
	if (state != 1)
		return;
	/* Signals are for the application's threads. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	usrsctp_init((uint16_t)udp_port, NULL, debug);
	settings();
	state = pump_start();
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (state < 0) {
		refuse(-state, "cannot start a thread: %s", strerror(-state));
		return;
	}
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
	debug("SCTP in user space, packets over %s", udp_port ? "UDP" : "IP");
	running = true;
	state = 1;
}

int start(void)
{
	if (in_child)
		return refuse(EPROTONOSUPPORT,
			      "this process was forked from one that already used SCTP: it can "
			      "use none; fork first, or exec");
	pthread_once(&once, run);
	return state;
}

/* The kernel shuts down the associations of a process that ends; here the process must stay for it.
 */
__attribute__((destructor)) static void finish(void)
{
	if (running && !in_child)
		sock_end_all();
}
