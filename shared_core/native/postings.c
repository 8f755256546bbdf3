/* The postings of a run of rows, from the numbers of their words. */

#include "kernels.h"

#include <stdlib.h>
#include <string.h>

enum { TERMS, STARTS, ROWS, COUNTS, LENGTHS, ARRAYS };

/* The segment that is made: its arrays. */
typedef struct {
    PyObject *made[ARRAYS];
    int32_t *rows;
    void *counts, *lengths; /* uint16_t, or int32_t where `wide` */
    int wide;
} Segment;

static void *make(Segment *segment, int part, Py_ssize_t items, Py_ssize_t size)
{
    segment->made[part] = PyByteArray_FromStringAndSize(NULL, items * size);
    return segment->made[part] ? PyByteArray_AsString(segment->made[part]) : NULL;
}

static void put(Segment *segment, int64_t at, int32_t row, int32_t length)
{
    segment->rows[at] = row;
    if (segment->wide) {
        ((int32_t *)segment->counts)[at] = 1;
        ((int32_t *)segment->lengths)[at] = length;
    } else {
        ((uint16_t *)segment->counts)[at] = 1;
        ((uint16_t *)segment->lengths)[at] = (uint16_t)length;
    }
}

static void count_again(Segment *segment, int64_t at)
{
    if (segment->wide)
        ((int32_t *)segment->counts)[at]++;
    else
        ((uint16_t *)segment->counts)[at]++;
}

/* Count in `next`, by term, the documents that hold it. `latest` is the last one seen with it. */
static int count_documents(const int32_t *numbers, const int32_t *lengths, Py_ssize_t documents,
                           Py_ssize_t vocabulary, int32_t *latest, int64_t *next)
{
    memset(latest, -1, (size_t)vocabulary * sizeof *latest);
    for (Py_ssize_t document = 0; document < documents; document++)
        for (int32_t i = 0; i < lengths[document]; i++) {
            int32_t term = *numbers++;
            if (term < 0 || term >= vocabulary) {
                PyErr_Format(PyExc_IndexError, "there is no term %ld", (long)term);
                return -1;
            }
            next[term] += latest[term] != (int32_t)document;
            latest[term] = (int32_t)document;
        }
    return 0;
}

/* Turn the counts in `next` into where each term's postings begin, and list the terms present. */
static int lay_out(Segment *segment, Py_ssize_t vocabulary, int64_t *next)
{
    Py_ssize_t present = 0, postings = 0, size = segment->wide ? 4 : 2;
    for (Py_ssize_t term = 0; term < vocabulary; term++)
        present += next[term] > 0;
    int32_t *terms = make(segment, TERMS, present, sizeof *terms);
    int64_t *starts = make(segment, STARTS, present + 1, sizeof *starts);
    if (!terms || !starts)
        return -1;
    for (Py_ssize_t term = 0; term < vocabulary; term++)
        if (next[term] > 0) {
            int64_t documents = next[term];
            *terms++ = (int32_t)term;
            *starts++ = next[term] = postings;
            postings += documents;
        }
    *starts = postings;
    segment->rows = make(segment, ROWS, postings, sizeof *segment->rows);
    segment->counts = make(segment, COUNTS, postings, size);
    segment->lengths = make(segment, LENGTHS, postings, size);
    return segment->rows && segment->counts && segment->lengths ? 0 : -1;
}

static void fill(Segment *segment, const int32_t *numbers, const int32_t *lengths,
                 Py_ssize_t documents, Py_ssize_t first, Py_ssize_t vocabulary, int32_t *latest,
                 int64_t *next)
{
    memset(latest, -1, (size_t)vocabulary * sizeof *latest);
    for (Py_ssize_t document = 0; document < documents; document++)
        for (int32_t i = 0; i < lengths[document]; i++) {
            int32_t term = *numbers++;
            if (latest[term] == (int32_t)document)
                count_again(segment, next[term] - 1);
            else
                put(segment, next[term]++, (int32_t)(first + document), lengths[document]);
            latest[term] = (int32_t)document;
        }
}

PyObject *count_postings(PyObject *module, PyObject *args)
{
    PyObject *number_array, *length_array, *found = NULL;
    Py_buffer numbers, lengths = {0};
    Py_ssize_t first, vocabulary, words = 0;
    Segment segment = {0};
    int32_t *latest = NULL;
    int64_t *next = NULL;
    if (!PyArg_ParseTuple(args, "OOnn", &number_array, &length_array, &first, &vocabulary))
        return NULL;
    if (borrow(number_array, &numbers, "numbers", "il", 4) < 0)
        return NULL;
    if (borrow(length_array, &lengths, "lengths", "il", 4) < 0)
        goto done;
    Py_ssize_t documents = length(&lengths);
    for (Py_ssize_t document = 0; document < documents && words >= 0; document++) {
        int32_t size = ((const int32_t *)lengths.buf)[document];
        words = size < 0 ? -1 : words + size;
        segment.wide |= size > UINT16_MAX;
    }
    if (words != length(&numbers) || vocabulary < 0 || vocabulary > INT32_MAX ||
        first < 0 || first > INT32_MAX - documents) {
        PyErr_SetString(PyExc_ValueError, "numbers, lengths and rows do not fit each other");
        goto done;
    }
    latest = malloc((size_t)(vocabulary + 1) * sizeof *latest);
    next = calloc((size_t)vocabulary + 1, sizeof *next);
    if (!latest || !next) {
        PyErr_NoMemory();
        goto done;
    }
    if (count_documents(numbers.buf, lengths.buf, documents, vocabulary, latest, next) < 0 ||
        lay_out(&segment, vocabulary, next) < 0)
        goto done;
    fill(&segment, numbers.buf, lengths.buf, documents, first, vocabulary, latest, next);
    found = PyTuple_Pack(ARRAYS, segment.made[TERMS], segment.made[STARTS], segment.made[ROWS],
                         segment.made[COUNTS], segment.made[LENGTHS]);
done:
    for (int part = 0; part < ARRAYS; part++)
        Py_XDECREF(segment.made[part]);
    free(next);
    free(latest);
    give_back(&lengths);
    give_back(&numbers);
    return found;
}
