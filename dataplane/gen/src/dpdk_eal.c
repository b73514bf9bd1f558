/* SPDX-License-Identifier: Apache-2.0 */
/* Starting and stopping EAL, and messages for drivers that end the program. */
#include "dpdk_eal.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>

#include "clock.h"
#include "run.h" /* EXIT_ERROR */

#define ARGUMENTS 128
#define CRASH_STACK 16384

static unsigned users;
static char *arguments; /* EAL keeps pointers into it */
static timer_t watch;
static bool watching;

/* Signal handlers may call nothing else. */
static void say(const char *text)
{
	ssize_t n = write(STDERR_FILENO, text, strlen(text));

	(void)n;
}

/* Sanitizers report crashes themselves. */
static bool sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return true;
#else
	return false;
#endif
}

/*
 * Under sanitizers, only crashes of EAL's threads are ignored: the main thread runs our code.
 */
static bool excused(void)
{
	return io_exit_status >= 0 && !(sanitized() && syscall(SYS_gettid) == getpid());
}

static void on_crash(int number)
{
	(void)number;
	if (excused()) {
		say("draygen: a driver of DPDK crashed while its port was closed; what was said "
		    "before stands\n");
		_exit(io_exit_status);
	}
	say("draygen: crashed, most likely inside a driver of DPDK: net_memif does that where its "
	    "peer goes while packets are on the way\n");
	/*
	 * The first call removes the handler: the instruction is tried again, and the signal
	 * ends the program.
	 */
}

static void on_watch(int number)
{
	(void)number;
	say("draygen: EAL did not start within --peer-timeout: a device that is the server of its "
	    "socket waits there for its peer\n");
	_exit(EXIT_ERROR);
}

/*
 * EAL's log goes to standard error, since standard output is for results. The first error in it is
 * the cause: later ones are consequences.
 */
static char first_error[160];

static ssize_t on_log(void *cookie, const char *text, size_t length)
{
	(void)cookie;
	if (first_error[0] == '\0' && rte_log_cur_msg_loglevel() <= (int)RTE_LOG_ERR)
		snprintf(first_error, sizeof(first_error), "%.*s",
			 (int)strcspn(text, "\n") < (int)length ? (int)strcspn(text, "\n")
								: (int)length,
			 text);
	return fwrite(text, 1, length, stderr) == length ? (ssize_t)length : 0;
}

static void open_log(void)
{
	FILE *log = fopencookie(NULL, "w", (cookie_io_functions_t){.write = on_log});

	if (log) {
		setvbuf(log, NULL, _IOLBF, 0);
		(void)rte_openlog_stream(log);
	} else {
		(void)rte_openlog_stream(stderr);
	}
	rte_log_set_global_level(RTE_LOG_WARNING); /* hide its messages about a normal start */
}

/* EAL aborts if one of its threads finds a descriptor closed by a driver. */
static void catch_crashes(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGABRT};
	static char stack[CRASH_STACK];
	stack_t other = {.ss_sp = stack, .ss_size = sizeof(stack)};
	struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_RESETHAND | SA_ONSTACK};

	(void)sigaltstack(&other, NULL);
	for (unsigned i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		(void)sigaction(signals[i], &action, NULL);
}

static void watch_begin(uint64_t ns)
{
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMAX};
	struct sigaction action = {.sa_handler = on_watch};
	struct itimerspec when = {.it_value = clock_timespec(ns)};

	(void)sigaction(SIGRTMAX, &action, NULL);
	watching = timer_create(CLOCK_MONOTONIC, &event, &watch) == 0 &&
		   timer_settime(watch, 0, &when, NULL) == 0;
}

static void watch_end(void)
{
	if (watching)
		(void)timer_delete(watch);
	watching = false;
}

/* Whether the socket at a path is open in some process. */
enum socket_state { SOCKET_NONE, SOCKET_STALE, SOCKET_OPEN };

/*
 * Probe a stream socket with a datagram socket. If a process listens, connect fails with the wrong
 * type and the listener notices nothing; otherwise it is refused.
 */
static enum socket_state look_at_socket(const struct sockaddr_un *at)
{
	enum socket_state state = SOCKET_OPEN;
	struct stat st;
	int fd;

	if (lstat(at->sun_path, &st) < 0 || !S_ISSOCK(st.st_mode))
		return SOCKET_NONE; /* connecting to a file that is no socket is refused as well */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return SOCKET_NONE;
	if (connect(fd, (const struct sockaddr *)at, sizeof(*at)) < 0 && errno == ECONNREFUSED)
		state = SOCKET_STALE;
	close(fd);
	return state;
}

static bool socket_address(struct sockaddr_un *at, const char *path)
{
	size_t length = strcspn(path, ",");

	*at = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (length == 0 || length >= sizeof(at->sun_path))
		return false;
	memcpy(at->sun_path, path, length);
	return true;
}

/* A socket that a killed server left behind keeps its successor from binding. */
static void remove_stale(const char *path)
{
	struct sockaddr_un at;

	if (socket_address(&at, path) && look_at_socket(&at) == SOCKET_STALE)
		(void)unlink(at.sun_path);
}

/*
 * Of "net_virtio_user0,path=PATH,server=1,..." and
 * "net_memif0,role=server,socket=PATH,socket-abstract=no,...".
 */
static void remove_stale_of(const char *device)
{
	const char *path = NULL;

	if (strstr(device, "net_virtio_user") && strstr(device, ",server=1"))
		path = strstr(device, ",path=");
	else if (strstr(device, "net_memif") && strstr(device, ",role=server") &&
		 strstr(device, ",socket-abstract=no"))
		path = strstr(device, ",socket=");
	if (!path)
		return;
	remove_stale(strchr(path, '=') + 1);
}

/* Of "net_mpring_peer0,role=secondary,socket=PATH,...", among other arguments. */
bool dpdk_eal_has_primary(const char *eal)
{
	const char *device = strstr(eal, "net_mpring"),
		   *path = device ? strstr(device, ",socket=") : NULL;
	char word[sizeof(((struct sockaddr_un *)0)->sun_path)];
	struct sockaddr_un at;

	if (!path || !strstr(device, ",role=secondary"))
		return true;
	path += strlen(",socket=");
	snprintf(word, sizeof(word), "%.*s", (int)strcspn(path, ", \t\n"), path);
	return !socket_address(&at, word) || look_at_socket(&at) == SOCKET_OPEN;
}

/* Returns how many, or -1. */
static int split(const char *text, char **argv)
{
	static char name[] = "draygen-dpdk";
	char *rest = NULL;
	int n = 1;

	argv[0] = name;
	free(arguments);
	arguments = strdup(text);
	if (!arguments)
		return -1;
	for (char *word = strtok_r(arguments, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest)) {
		if (n + 1 == ARGUMENTS)
			return -1;
		remove_stale_of(word);
		argv[n++] = word;
	}
	argv[n] = NULL;
	return n;
}

bool dpdk_eal_start(const struct options *o, struct io_error *error)
{
	char *argv[ARGUMENTS];
	int argc, ret;

	if (users > 0) {
		users++;
		return true;
	}
	argc = split(o->eal, argv);
	if (argc < 0)
		return io_fail(error, "--eal: over %d arguments, or no memory", ARGUMENTS - 2);
	open_log();
	if (!sanitized())
		catch_crashes();
	watch_begin(o->peer_timeout_ns);
	ret = rte_eal_init(argc, argv);
	watch_end();
	if (ret < 0)
		return io_fail(error, "EAL did not start: %s: %s", rte_strerror(rte_errno),
			       first_error[0] ? first_error : "it gives no reason");
	users = 1;
	return true;
}

const char *dpdk_eal_complaint(void)
{
	return first_error;
}

void dpdk_eal_closing(void)
{
	if (sanitized() && io_exit_status >= 0)
		catch_crashes(); /* a crash of EAL's own threads while drivers close is not reported
				  */
}

void dpdk_eal_stop(void)
{
	if (--users == 0)
		(void)rte_eal_cleanup();
}
