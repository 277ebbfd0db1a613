#include "base/secrets.h"

#include <gmock/gmock.h>

namespace fullbore {
namespace {

using testing::ElementsAreArray;

TEST(Secrets, AreRecognisedByTheirName) {
  for (const char* name : {"--key",
                           "--token",
                           "--secret",
                           "--password",
                           "--passwd",
                           "--credential",
                           "--credentials",
                           "--signature",
                           "--auth",
                           "--api-key",
                           "--api_key",
                           "apiKey",
                           "-token",
                           "--hf-token",
                           "HF_TOKEN",
                           "WANDB_API_KEY",
                           "OPENAI_API_KEY",
                           "AWS_SECRET_ACCESS_KEY",
                           "AWS_SESSION_TOKEN",
                           "AZURE_STORAGE_KEY",
                           "GITHUB_TOKENS",
                           "API_KEYS",
                           "DB_PASS",
                           "dbPassword",
                           "MLFLOW_TRACKING_PASSWORD",
                           "model.hub_token",
                           "+logger.wandb.key",
                           "X-Amz-Signature",
                           "X-Amz-Security-Token",
                           "Authorization",
                           "client-secret",
                           "--image-api-key",
                           "eHF_TOKEN",
                           "--auth-token",
                           "SECRET_NAME",
                           "Token"}) {
    EXPECT_TRUE(NamesASecret(name)) << name;
  }
}

TEST(Secrets, AreNotRecognisedByPartOfAName) {
  for (const char* name : {"--tokenizer",
                           "--num-tokens",
                           "--max-tokens",
                           "--max-token-length",
                           "--tokens-per-batch",
                           "--keypoints",
                           "--key-points",
                           "--keys",
                           "monkey",
                           "turkey",
                           "--monkey",
                           "--key-dim",
                           "--num-key-value-heads",
                           "--key_frames",
                           "--pad-token",
                           "--eos_token",
                           "--bos-token-id",
                           "--token-dropout",
                           "--token-type",
                           "--sort-key",
                           "--image-key",
                           "--author",
                           "--authors",
                           "--no-auth",
                           "--auth-type",
                           "--signature-version",
                           "--password-file",
                           "--token-path",
                           "--bypass",
                           "--passes",
                           "--compass",
                           "--secretary",
                           "keyboard",
                           "--keep",
                           "--designature",
                           "--sigma",
                           "--sigmoid",
                           "lr",
                           "",
                           "--",
                           "="}) {
    EXPECT_FALSE(NamesASecret(name)) << name;
  }
}

struct Case {
  std::vector<std::string> words, masked;
};

TEST(Secrets, AreMaskedInACommandLine) {
  const Case cases[] = {
      {{"train.py", "--api-key", "X", "--lr", "1"}, {"train.py", "--api-key", "***", "--lr", "1"}},
      {{"train.py", "--api-key=X", "-token=X"}, {"train.py", "--api-key=***", "-token=***"}},
      {{"train.py", "--password=a b;c,d=e'f\"g"}, {"train.py", "--password=***"}},
      {{"train.py", "--password", "a b --lr 1"}, {"train.py", "--password", "***"}},
      {{"env", "HF_TOKEN=X", "python", "train.py"}, {"env", "HF_TOKEN=***", "python", "train.py"}},
      {{"docker", "run", "-e", "WANDB_API_KEY=X", "-eHF_TOKEN=X", "image"},
       {"docker", "run", "-e", "WANDB_API_KEY=***", "-eHF_TOKEN=***", "image"}},
      {{"docker", "run", "--env=WANDB_API_KEY=X"}, {"docker", "run", "--env=WANDB_API_KEY=***"}},
      {{"train.py", "+logger.wandb.api_key=X", "model.lr=1"},
       {"train.py", "+logger.wandb.api_key=***", "model.lr=1"}},
      {{"curl", "-H", "Authorization: Bearer X", "--header=X-Api-Key: Y="},
       {"curl", "-H", "Authorization: ***", "--header=X-Api-Key: ***"}},
      {{"sh", "-c", "cd x; HF_TOKEN=X python train.py --api-key Y --lr 1; PASSWORD='a b' z"},
       {"sh", "-c", "cd x; HF_TOKEN=*** python train.py --api-key *** --lr 1; PASSWORD='***' z"}},
      {{"python", "-c", "import os; os.environ[\"HF_TOKEN\"] = 'X'; login(token=\"Y\", n=1)"},
       {"python", "-c", "import os; os.environ[\"HF_TOKEN\"] = '***'; login(token=\"***\", n=1)"}},
      {{"train.py", "--config", "{\"api_key\": \"X\", \"lr\": 1, \"password\":\"Y\"}"},
       {"train.py", "--config", "{\"api_key\": \"***\", \"lr\": 1, \"password\":\"***\"}"}},
      {{"run", "[\"--token\", \"X\", \"--lr\", \"1\"]"}, {"run", "[\"--token\", \"***\", \"--lr\", \"1\"]"}},
      {{"train.py", "https://me:X@host/a.tar?X-Amz-Signature=Y&b=1", "--data=s3://X:Y@bucket/a"},
       {"train.py", "https://***@host/a.tar?***", "--data=s3://***@bucket/a"}},
      {{"train.py", "postgres://me:X@host/db", "az://box/a?sig=Y"},
       {"train.py", "postgres://***@host/db", "az://box/a?sig=***"}},
      {{"train.py", "--auth", "--lr", "1"}, {"train.py", "--auth", "--lr", "1"}},
      {{"train.py", "--token"}, {"train.py", "--token"}},
      {{"train.py", "--token", ""}, {"train.py", "--token", ""}},
  };
  for (const Case& it : cases) {
    EXPECT_THAT(MaskSecrets(it.words), ElementsAreArray(it.masked));
    EXPECT_THAT(MaskSecrets(it.masked), ElementsAreArray(it.masked)) << "masked twice";
  }
}

TEST(Secrets, LeaveTheRestOfACommandLineAlone) {
  const std::vector<std::string> words = {"torchrun",
                                          "--nproc-per-node=2",
                                          "train.py",
                                          "--tokenizer",
                                          "bert",
                                          "--tokenizer=bert",
                                          "--num-tokens",
                                          "5",
                                          "--keypoints",
                                          "17",
                                          "monkey",
                                          "--monkey=yes",
                                          "--pad-token",
                                          "<pad>",
                                          "--image-key",
                                          "jpg",
                                          "--lr=0.1",
                                          "--data",
                                          "/data/secret/train.tar",
                                          "--name=key",
                                          "token",
                                          "http://host:80/a@b.tar",
                                          "s3://bucket/a?b@c",
                                          "sh -c 'if [ $token == x ]; then a::key::b; fi'",
                                          "",
                                          "--password-file",
                                          "/run/secret"};
  EXPECT_THAT(MaskSecrets(words), ElementsAreArray(words));
}

TEST(Secrets, OfUrlsAreMasked) {
  EXPECT_EQ(MaskUrl("https://me:secret@host/x.tar?X-Amz-Signature=abc"), "https://***@host/x.tar?***");
  EXPECT_EQ(MaskUrl("HTTPS://token@host:443?a"), "HTTPS://***@host:443?***");
  EXPECT_EQ(MaskUrl("https://host/a b'c\"d?sig=x y'z"), "https://host/a b'c\"d?***");
  EXPECT_EQ(MaskUrl("https://u:p@h/a.tar,https://u:p@h/b.tar?x"),
            "https://***@h/a.tar,https://***@h/b.tar?***");
  EXPECT_EQ(MaskUrl("https://host/a?"), "https://host/a?");
  for (const char* harmless :
       {"http://host/a@b.tar", "http://host", "s3://bucket/a?b@c", "/data/a?b", "", "://", "@"}) {
    EXPECT_EQ(MaskUrl(harmless), harmless);
  }
}

TEST(Secrets, OfUrlsInATextAreMasked) {
  EXPECT_EQ(
      MaskUrls("cannot read 'https://a:b@host/x?sig=1': it ended; see <http://h/y?z> or \"http://h?q\""),
      "cannot read 'https://***@host/x?***': it ended; see <http://h/y?***> or \"http://h?***\"");
  EXPECT_EQ(MaskUrls("cannot read 'http://h/it's a file.tar?sig=1': is it there? Ask."),
            "cannot read 'http://h/it's a file.tar?***': is it there? Ask.");
  EXPECT_EQ(MaskUrls("is it there? a://b"), "is it there? a://b");
  const Error masked = MaskUrls(Error{ErrorCode::kIo, "https://a@b", "http://h/?x"});
  EXPECT_EQ(masked.text, "https://***@b");
  EXPECT_EQ(masked.hint, "http://h/?***");
}

}  // namespace
}  // namespace fullbore
