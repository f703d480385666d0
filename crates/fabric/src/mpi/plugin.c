/* What Graphmill asks of MPI, in as few functions as will do, so that one program runs with any MPI: this file is compiled
 * against the one that is there, and loaded when it is needed.
 *
 * One thread at a time calls. Functions return 0, or an error of MPI's; an operation on its way has a number, a slot, which is
 * free again when poll has given it back. Memory of an operation has to stay where it is until then. */

#include <limits.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Changes when anything here does that the program relies on. */
#define ABI 1

static MPI_Comm world;
static int slots;
static MPI_Request *requests;
static uint64_t *bytes_sent;

uint32_t graphmill_mpi_abi(void) { return ABI; }

int graphmill_mpi_start(int *rank, int *ranks) {
    int started = 0, given = 0;
    int error = MPI_Initialized(&started);
    if (!error && !started) {
        error = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &given);
        if (!error && given < MPI_THREAD_SERIALIZED) error = MPI_ERR_OTHER;
    }
    if (!error) error = MPI_Comm_dup(MPI_COMM_WORLD, &world);
    if (!error) error = MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    if (!error) error = MPI_Comm_rank(world, rank);
    if (!error) error = MPI_Comm_size(world, ranks);
    return error;
}

/* A slot that is free, or -1 where there is no memory. */
static int free_slot(void) {
    int slot = 0;
    while (slot < slots && requests[slot] != MPI_REQUEST_NULL) slot++;
    if (slot < slots) return slot;
    int more = slots ? 2 * slots : 64;
    void *grown[] = {
        realloc(requests, more * sizeof *requests),
        realloc(bytes_sent, more * sizeof *bytes_sent),
    };
    if (grown[0]) requests = grown[0];
    if (grown[1]) bytes_sent = grown[1];
    if (!grown[0] || !grown[1]) return -1;
    for (int i = slots; i < more; i++) requests[i] = MPI_REQUEST_NULL;
    slots = more;
    return slot;
}

/* Synchronous: complete when the receiver has given memory for it, so that nothing piles up there. */
int graphmill_mpi_send(const void *bytes, uint64_t count, int to, int tag, int *slot) {
    if (count > INT_MAX) return MPI_ERR_COUNT;
    *slot = free_slot();
    if (*slot < 0) return MPI_ERR_NO_MEM;
    bytes_sent[*slot] = count;
    return MPI_Issend(bytes, (int)count, MPI_BYTE, to, tag, world, &requests[*slot]);
}

int graphmill_mpi_receive(void *bytes, uint64_t room, int from, int tag, int *slot) {
    *slot = free_slot();
    if (*slot < 0) return MPI_ERR_NO_MEM;
    bytes_sent[*slot] = UINT64_MAX;
    int most = room > INT_MAX ? INT_MAX : (int)room;
    return MPI_Irecv(bytes, most, MPI_BYTE, from, tag, world, &requests[*slot]);
}

/* Up to `most` operations that are complete: their slots, bytes and errors; how many there are. */
int graphmill_mpi_poll(int *done, uint64_t *bytes, int *errors, int most, int *count) {
    *count = 0;
    if (slots == 0) return 0;
    /* One more look for each operation: it is what makes MPI go on. */
    for (int slot = 0; slot < slots && *count < most; slot++) {
        if (requests[slot] == MPI_REQUEST_NULL) continue;
        int flag = 0, received = 0;
        MPI_Status status;
        int error = MPI_Test(&requests[slot], &flag, &status);
        if (!error && !flag) continue;
        if (!error && bytes_sent[slot] == UINT64_MAX) error = MPI_Get_count(&status, MPI_BYTE, &received);
        done[*count] = slot;
        bytes[*count] = bytes_sent[slot] == UINT64_MAX ? (uint64_t)received : bytes_sent[slot];
        errors[*count] = error;
        requests[slot] = MPI_REQUEST_NULL;
        ++*count;
    }
    return 0;
}

/* Whether an error says that a frame was longer than the memory for it. */
int graphmill_mpi_is_truncation(int error) {
    int class = error;
    MPI_Error_class(error, &class);
    return class == MPI_ERR_TRUNCATE;
}

/* Ends the receives that are on their way, so that MPI can be left. */
int graphmill_mpi_finish(void) {
    for (int slot = 0; slot < slots; slot++) {
        if (requests[slot] == MPI_REQUEST_NULL) continue;
        int error = MPI_Cancel(&requests[slot]);
        if (!error) error = MPI_Wait(&requests[slot], MPI_STATUS_IGNORE);
        if (error) return error;
    }
    int error = MPI_Comm_free(&world);
    return error ? error : MPI_Finalize();
}

/* What an error means; what the library is. Cut to `room` bytes, the last of them 0. */
void graphmill_mpi_describe(int error, char *text, int room) {
    char whole[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, whole, &length);
    strncpy(text, whole, room - 1);
    text[room - 1] = 0;
}

void graphmill_mpi_library(char *text, int room) {
    char whole[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    MPI_Get_library_version(whole, &length);
    strncpy(text, whole, room - 1);
    text[room - 1] = 0;
}
