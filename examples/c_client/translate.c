/* Translate texts with an exported SavedModel, by TensorFlow's C API alone.
 *
 *   translate FOLDER INPUT OUTPUT [--library FILE.so] TEXT...
 *
 * INPUT and OUTPUT are the names of tensors, such as serving_default_text and
 * StatefulPartitionedCall:1, as `saved_model_cli show --all` prints them.
 * A SavedModel made with --tokenizer-ops tf_text needs the library of
 * tensorflow_text's operations; one made with --tokenizer-ops core needs none.
 * docs/how_to/serve.md says how to compile it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

static void check(TF_Status* status, const char* doing) {
  if (TF_GetCode(status) != TF_OK) {
    fprintf(stderr, "%s: %s\n", doing, TF_Message(status));
    exit(1);
  }
}

/* Find `name:index` in the graph; without an index it is output 0. */
static TF_Output tensor_named(TF_Graph* graph, const char* name) {
  char operation[512];
  snprintf(operation, sizeof operation, "%s", name);
  int index = 0;
  char* colon = strrchr(operation, ':');
  if (colon) {
    *colon = '\0';
    index = atoi(colon + 1);
  }
  TF_Output output = {TF_GraphOperationByName(graph, operation), index};
  if (!output.oper) {
    fprintf(stderr, "The model has no tensor %s.\n", name);
    exit(1);
  }
  return output;
}

int main(int count, char** arguments) {
  if (count < 4) {
    fprintf(stderr,
            "usage: translate FOLDER INPUT OUTPUT [--library FILE.so] "
            "TEXT...\n");
    return 2;
  }
  const char* folder = arguments[1];
  int first = 4;
  TF_Status* status = TF_NewStatus();
  if (count > 5 && strcmp(arguments[4], "--library") == 0) {
    TF_LoadLibrary(arguments[5], status);
    check(status, "Loading the library");
    first = 6;
  }

  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  const char* tag = "serve";
  TF_Session* session = TF_LoadSessionFromSavedModel(
      options, NULL, folder, &tag, 1, graph, NULL, status);
  check(status, "Loading the model");

  int64_t texts = count - first;
  TF_Tensor* input =
      TF_AllocateTensor(TF_STRING, &texts, 1, texts * sizeof(TF_TString));
  TF_TString* strings = TF_TensorData(input);
  for (int i = 0; i < texts; i++) {
    TF_TString_Init(&strings[i]);
    TF_TString_Copy(&strings[i], arguments[first + i],
                    strlen(arguments[first + i]));
  }

  TF_Output from = tensor_named(graph, arguments[2]);
  TF_Output to = tensor_named(graph, arguments[3]);
  TF_Tensor* output = NULL;
  TF_SessionRun(session, NULL, &from, &input, 1, &to, &output, 1, NULL, 0,
                NULL, status);
  check(status, "Translating");

  TF_TString* answers = TF_TensorData(output);
  for (int64_t i = 0; i < TF_TensorElementCount(output); i++) {
    printf("%.*s\n", (int)TF_TString_GetSize(&answers[i]),
           TF_TString_GetDataPointer(&answers[i]));
    TF_TString_Dealloc(&answers[i]);
  }
  for (int i = 0; i < texts; i++) TF_TString_Dealloc(&strings[i]);
  TF_DeleteTensor(output);
  TF_DeleteTensor(input);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
